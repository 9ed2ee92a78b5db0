-- PostgreSQL, one transaction of pgbench: groups, a sort, long strings and a document, over a tenth of the accounts.
-- pgbench -f totals.sql, on tables of pgbench -i
\set first random(1, 90000 * :scale)
with part as (select aid, abalance, md5(aid::text) as word from pgbench_accounts where aid between :first and :first + 9999)
select count(*), sum(total), max(length(words)), length(json_agg(word_group)::text)
from (
  select substr(word, 1, 2) as word_group, sum(aid) as total, string_agg(word, ',' order by word) as words
  from part group by 1
) as groups;
