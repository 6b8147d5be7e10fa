-- One warehouse, about as TPC-C has it, with a tenth of its items.
CREATE TABLE district (id int PRIMARY KEY, next_order int);
INSERT INTO district SELECT id, 1 FROM generate_series(1, 10) AS id;
CREATE TABLE customer (district int, id int, discount numeric, credit text, data text, PRIMARY KEY (district, id));
INSERT INTO customer
    SELECT district, id, 0.1, 'GC', repeat('c', 300) FROM generate_series(1, 10) AS district, generate_series(1, 3000) AS id;
CREATE TABLE item (id int PRIMARY KEY, price numeric, name text);
INSERT INTO item SELECT id, 1 + id % 100, 'item' || id FROM generate_series(10, 10009) AS id;
CREATE TABLE stock (item int PRIMARY KEY, quantity int, sold int, data text);
INSERT INTO stock SELECT id, 50, 0, repeat('s', 250) FROM generate_series(10, 10009) AS id;
CREATE TABLE orders (district int, number int, customer int, entered timestamptz, lines int, PRIMARY KEY (district, number));
CREATE TABLE new_order (district int, number int, PRIMARY KEY (district, number));
CREATE TABLE order_line (district int, number int, line int, item int, quantity int, information text,
    PRIMARY KEY (district, number, line));
VACUUM ANALYZE;
