-- What a server's own tests are made of: types, joins, windows, recursion, functions that raise, indexes of every kind.
set max_parallel_workers_per_gather = 2;
set min_parallel_table_scan_size = 0;
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
create table person (id int primary key, name text, born date, tags text[], data jsonb, place point);
insert into person
select i, 'person ' || i, date '1950-01-01' + i % 20000, array['a' || i % 7, 'b' || i % 11, repeat('c', i % 50)],
       jsonb_build_object('age', i % 90, 'list', to_jsonb(array[i, i * 2]), 'deep', jsonb_build_object('x', i % 13)),
       point(i % 100, i % 37)
from generate_series(1, 40000) i;
create table purchase (person int references person, day date, amount numeric(12, 2), note text) partition by range (day);
create table purchase_old partition of purchase for values from ('2000-01-01') to ('2010-01-01');
create table purchase_new partition of purchase for values from ('2010-01-01') to ('2030-01-01');
insert into purchase
select i * 7 % 40000 + 1, date '2000-01-01' + i % 9000, (i * 37 % 100000) / 100.0, repeat('note ' || i, i % 20)
from generate_series(1, 120000) i;
create index on person using gin (tags);
create index on person using gin (data jsonb_path_ops);
create index on person using gist (place);
create index on person using brin (born);
create index on person using hash (name);
create index on person using gin (to_tsvector('english', name));
create index on purchase (person, day);
analyze;
select count(*), sum(amount), max(length(note)) from purchase;
select tags[1], count(*), avg((data ->> 'age')::int)::numeric(10, 4) from person group by 1 order by 1;
select count(*) from person where tags @> array['a3'] and data @> '{"deep": {"x": 5}}';
select count(*) from person where to_tsvector('english', name) @@ to_tsquery('english', '77 | 1234');
select id from person order by place <-> point(50, 20), id limit 5;
select person, day, sum(amount) over (partition by person order by day, amount) from purchase order by 1, 2, 3 limit 20;
select md5(string_agg(name || total, ',' order by id))
from (select p.id, p.name, sum(b.amount) total from person p join purchase b on b.person = p.id group by p.id) s;
with recursive tree (id, path) as (
    select 1, array[1] union all select id * 2 + k, path || id * 2 + k from tree, (values (0), (1)) v (k) where id < 3000
) select count(*), max(array_length(path, 1)) from tree;
create function ratio(a int, b int) returns numeric language plpgsql as $$
begin
    return a::numeric / b;
exception when division_by_zero then
    return -1;
end $$;
select sum(ratio(i, i % 5))::numeric(20, 6) from generate_series(1, 20000) i;
create function doubled() returns trigger language plpgsql as $$ begin new.v := new.v * 2; return new; end $$;
create table fired (v numeric);
create trigger doubling before insert on fired for each row execute function doubled();
insert into fired select i from generate_series(1, 20000) i;
select sum(v) from fired;
prepare by_name (text) as select count(*) from person where name = $1;
execute by_name('person 77');
begin;
savepoint one;
insert into person values (1);
rollback to one;
update person set name = name || '!' where id % 3 = 0;
delete from purchase where person % 5 = 0;
commit;
begin;
delete from person where id > 0;
rollback;
merge into fired f using (values (2), (7)) s (v) on f.v = s.v
when matched then update set v = 1000 when not matched then insert values (s.v);
select sum(v), count(*) from fired;
select xmlelement(name x, xmlagg(xmlelement(name y, id) order by id))::text from person where id < 10;
select regexp_replace(repeat('abc', 2000), '(b)', '<\1>', 'g') = repeat('a<b>c', 2000);
set work_mem = '64kB';
select md5(string_agg(note, '' order by note, day, person)) from purchase where person % 7 = 0;
create materialized view totals as select person, sum(amount) s from purchase group by person;
refresh materialized view totals;
cluster person using person_pkey;
vacuum (full, analyze) purchase;
reindex table person;
