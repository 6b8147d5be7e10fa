-- A transaction like TPC-C's New-Order: ten lines of one run of items, in one warehouse.
\set district random(1, 10)
\set customer random(1, 3000)
\set a random(1, 1000)
\set b random(1, 1000)
BEGIN;
UPDATE district SET next_order = next_order + 1 WHERE id = :district RETURNING next_order AS number \gset
SELECT discount, credit FROM customer WHERE district = :district AND id = :customer;
INSERT INTO orders VALUES (:district, :number, :customer, now(), 10);
INSERT INTO new_order VALUES (:district, :number);
SELECT id, price FROM item WHERE id BETWEEN 10 * :a AND 10 * :a + 9;
SELECT item, quantity FROM stock WHERE item BETWEEN 10 * :b AND 10 * :b + 9 ORDER BY item FOR UPDATE;
UPDATE stock SET quantity = quantity - 5 + CASE WHEN quantity < 15 THEN 91 ELSE 0 END, sold = sold + 5
    WHERE item BETWEEN 10 * :b AND 10 * :b + 9;
INSERT INTO order_line SELECT :district, :number, line, 10 * :b + line, 5, 'some information of the line'
    FROM generate_series(0, 9) AS line;
COMMIT;
