sqlite3 s.db "create table t (n); insert into t values (1); select 'one'; insert into t values (2); select 'two'"
