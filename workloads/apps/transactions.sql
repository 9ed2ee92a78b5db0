-- PostgreSQL, one transaction of pgbench: a payment, after TPC-B. pgbench -f transactions.sql, on tables of pgbench -i
\set account random(1, 100000 * :scale)
\set branch random(1, 1 * :scale)
\set teller random(1, 10 * :scale)
\set amount random(-5000, 5000)
begin;
update pgbench_accounts set abalance = abalance + :amount where aid = :account;
select abalance from pgbench_accounts where aid = :account;
update pgbench_tellers set tbalance = tbalance + :amount where tid = :teller;
update pgbench_branches set bbalance = bbalance + :amount where bid = :branch;
insert into pgbench_history (tid, bid, aid, delta, mtime) values (:teller, :branch, :account, :amount, current_timestamp);
end;
