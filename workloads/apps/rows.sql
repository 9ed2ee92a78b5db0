-- SQLite: a table of @rows rows in memory, an index, an aggregate over it. sqlite3 :memory: '.param set @rows 50000' '.read rows.sql'
create table t(a int, b text, c real);
with recursive r(x) as (select 1 union all select x + 1 from r where x < @rows)
  insert into t select x, 'name' || (x * 7919 % 100003), x * 0.37 from r;
create index i on t(b);
select count(*), count(distinct b), sum(c) from t;
select b, count(*), group_concat(a) from t group by b order by 2 desc, 1 limit 3;
