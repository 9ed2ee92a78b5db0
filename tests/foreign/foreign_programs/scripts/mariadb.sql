-- Types, joins, windows, recursion, JSON, full text, partitions, triggers and stored programs.
create table person (id int primary key, name varchar(200), born date, data json, body text, fulltext (body), key (born));
insert into person
select seq, concat('person ', seq), date_add('1950-01-01', interval seq % 20000 day),
       json_object('age', seq % 90, 'list', json_array(seq, seq * 2)), concat(repeat('word ', seq % 40), 'mark', seq % 97)
from seq_1_to_20000;
create table purchase (id int auto_increment, person int, day date, amount decimal(12, 2), note mediumtext,
    primary key (id, day), key (person, day)) partition by range (year(day))
    (partition a values less than (2010), partition b values less than maxvalue);
insert into purchase (person, day, amount, note)
select seq * 7 % 20000 + 1, date_add('2000-01-01', interval seq % 9000 day), (seq * 37 % 100000) / 100, repeat('n', seq % 600)
from seq_1_to_60000;
create table old (id int primary key, v text) engine = Aria;
insert into old select seq, repeat('v', seq % 300) from seq_1_to_20000;
create table temporary_total engine = MyISAM as select person, sum(amount) s from purchase group by person;
select count(*), sum(amount), max(length(note)) from purchase;
select json_value(data, '$.age') a, count(*) from person group by a order by a + 0 limit 20;
select count(*) from person where match (body) against ('mark13');
select person, day, sum(amount) over (partition by person order by day, id) from purchase order by person, day, id limit 20;
select md5(group_concat(t order by person)) from (select person, sum(amount) t from purchase group by person limit 20000) s;
with recursive tree (id, depth) as (select 1, 1 union all select id * 2 + k, depth + 1 from tree
    join (select 0 k union select 1) v where id < 3000) select count(*), max(depth) from tree;
select count(distinct substr(note, 1, 30), amount) from purchase;
select a.day, count(*) from purchase a join purchase b using (day) where a.id < 2000 group by a.day order by 1 limit 10;
delimiter //
create procedure fill(n int)
begin
    declare i int default 0;
    declare continue handler for 1062 set @twice = ifnull(@twice, 0) + 1;
    while i < n do
        insert into old values (i * 3, concat('filled ', i));
        set i = i + 1;
    end while;
end //
create trigger marked before insert on old for each row set new.v = concat(new.v, '!') //
delimiter ;
start transaction;
call fill(9000);
commit;
select @twice, count(*), sum(length(v)) from old;
update person set name = concat(name, '!') where id % 3 = 0;
delete from purchase where person % 5 = 0;
start transaction;
delete from person;
rollback;
prepare one from 'select count(*) from person where born > ?';
set @day = '1980-01-01';
execute one using @day;
alter table person add column extra int default 7, add key (extra);
optimize table purchase;
checksum table person, purchase, old, temporary_total;
