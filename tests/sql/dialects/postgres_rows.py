"""Expressions that PostgreSQL answers, in its dialect."""

EXPRESSIONS = """
i / k
i % k
-i / k
7 / 2
-7 / 2
7.0 / 2
p / 4
p * 3
p + 1
v / k
2 ^ 10
k ^ 2
|/ 16.0
||/ 27.0
@ i
i & k
i | k
i # k
~ k
1 << 4
256 >> 2
abs(i)
round(p, 1)
round(2.5)
round(-2.5)
round(p)
round(123.456, -1)
floor(v)
ceil(v)
ceiling(p)
trunc(v)
trunc(1.239, 2)
sign(i)
sqrt(k)
cbrt(27)
exp(0)
ln(2)
log(100)
log(2, 8)
power(k, 2)
mod(i, k)
div(7, 2)
greatest(i, k)
least(i, k)
gcd(12, 18)
lcm(4, 6)
factorial(5)
pi()
degrees(pi())
radians(180)
sin(0)
atan2(1, 1)
width_bucket(5.3, 0, 10, 5)
length(s)
char_length(s)
octet_length(s)
bit_length(s)
upper(s)
lower(s)
initcap(s)
reverse(s)
left(s, 3)
right(s, 3)
left(s, -2)
substr(s, 2, 3)
substring(s, 2)
substring(s FROM 2 FOR 3)
substring(s FROM 0 FOR 3)
substr(s, -2, 4)
substr(s, -2)
substring(s FROM 'l+')
position('o' IN s)
strpos(s, 'o')
starts_with(s, 'He')
replace(s, 'l', 'L')
translate(s, 'lo', 'xy')
overlay('abcdef' PLACING 'XX' FROM 2 FOR 3)
trim('  x ')
trim(both 'x' from 'xxaxx')
btrim('xxaxx', 'x')
ltrim('xxa', 'x')
rtrim('axx', 'x')
lpad(t, 5, '-')
rpad(t, 5, '-')
repeat(t, 3)
concat(s, t, n)
concat(s, NULL)
concat_ws('-', s, t)
s || t
s || n
split_part(s, ',', 2)
split_part(s, ',', -1)
split_part(s, '', 1)
split_part(s, '', -1)
string_to_array(s, ',')
array_to_string(w, '+')
ascii(t)
chr(65)
md5(t)
to_hex(k)
encode(sha256(t::bytea), 'hex')
quote_literal(t)
format('%s-%s', s, n)
s ~ 'l+'
s ~* 'HELLO'
s !~ 'l+'
s !~* 'HELLO'
regexp_replace(s, 'l', 'L')
regexp_replace(s, 'l', 'L', 'g')
regexp_replace(s, 'L', 'x', 'gi')
regexp_match(s, 'l+')
regexp_split_to_array(s, ',')
regexp_count(s, 'l')
regexp_substr(s, 'l+')
regexp_like(s, 'l+')
s LIKE 'H%'
s NOT LIKE '%b%'
s ILIKE 'h%'
s LIKE 'a!,%' ESCAPE '!'
s SIMILAR TO '%o%'
s ~~ 'H%'
CASE WHEN i > 0 THEN 'p' WHEN i < 0 THEN 'n' ELSE 'z' END
CASE t WHEN 'o' THEN 1 END
coalesce(i, -1)
nullif(i, 0)
i IS NULL
i IS NOT NULL
i IS DISTINCT FROM NULL
b IS TRUE
b IS NOT FALSE
b IS UNKNOWN
NOT b
b AND i > 0
b OR i IS NULL
i BETWEEN 0 AND 10
i BETWEEN SYMMETRIC 10 AND 0
i IN (7, 0)
i NOT IN (7, NULL)
i = ANY (ARRAY[7, 0])
i <> ALL (ARRAY[7, 0])
k = ANY (l)
(n, k) IN ((1, 2), (3, 3))
(n, k) < (2, 3)
CAST(v AS INTEGER)
CAST(2.5 AS INTEGER)
CAST(3.5 AS INTEGER)
'12'::int + 1
p::int
p::double precision
i::text
i::numeric(10, 1)
b::int
b::text
d::text
'2024-01-05'::date
m::date
d::timestamp
date '2024-01-05'
extract(year FROM d)
extract(month FROM d)
extract(day FROM d)
extract(quarter FROM d)
extract(week FROM d)
extract(dow FROM d)
extract(isodow FROM d)
extract(doy FROM d)
extract(isoyear FROM d)
extract(decade FROM d)
extract(century FROM d)
extract(hour FROM m)
extract(minute FROM m)
extract(second FROM m)
extract(milliseconds FROM m)
extract(microseconds FROM m)
extract(epoch FROM m)
date_part('dow', d)
date_part('year', m)
date_trunc('month', m)
date_trunc('week', m)
date_trunc('hour', m)
date_trunc('day', d)
d + 3
d - 1
d - e
d + interval '1 month'
d - interval '1 day'
m + interval '36 hours'
m + interval '1 day 2 hours'
m - interval '1 year'
m - (n * interval '1 day')
make_date(2024, 2, 29)
make_interval(days => 3)
make_interval(days := 3)
make_timestamp(2024, 2, 29, 1, 2, 3.5)
to_char(m, 'YYYY-MM-DD HH24:MI:SS')
to_char(d, 'DD.MM.YY')
to_char(d, 'Mon')
to_char(d, 'Day')
to_char(d, 'FMMonth')
to_char(p, '999.99')
to_date('05.01.2024', 'DD.MM.YYYY')
to_timestamp('2024-01-05 10:11', 'YYYY-MM-DD HH24:MI')
to_timestamp(0)
age(timestamp '2024-03-01', timestamp '2024-02-29')
date_bin('15 minutes', m, timestamp '2000-01-01')
d > date '2000-01-01'
m > '2020-01-01'
d = '2024-02-29'
(d, d) OVERLAPS (e, e)
l[1]
l[1:2]
l[9]
array_length(l, 1)
cardinality(l)
array_upper(l, 1)
array_append(l, 9)
array_prepend(9, l)
array_cat(l, ARRAY[9])
l || 9
l || ARRAY[9]
array_position(l, 2)
array_remove(l, 1)
array_replace(l, 1, 8)
2 = ANY(l)
ARRAY[n, k]
ARRAY[1, 2] = ARRAY[1, 2]
(ARRAY[n, k])[2]
(n, i) BETWEEN (1, 7) AND (3, -1)
(n, i) NOT BETWEEN (1, 7) AND (3, -1)
(n, i) BETWEEN SYMMETRIC (3, -1) AND (1, 7)
ROW(n, i) = ROW(1, 7)
'{"a": {"b": 3}}'::json -> 'a' ->> 'b'
'{"a": 1}'::jsonb ->> 'a'
'{"a": 1}'::jsonb ? 'a'
'[1, 2]'::json -> 1
'{"a": {"b": 3}}'::json #>> '{a,b}'
json_array_length('[1, 2]')
num_nulls(i, v)
num_nonnulls(i, v)
trim_scale(p)
scale(p)
string_to_array('a~b', '~')
unistr('d\\0061t')
""".strip().splitlines()

AGGREGATES = """
count(*)
count(i)
count(DISTINCT k)
sum(i)
sum(p)
sum(v)
avg(i)
avg(p)
min(s)
max(d)
stddev(v)
stddev_pop(v)
var_samp(v)
variance(n)
var_pop(v)
corr(n, k)
covar_pop(n, k)
covar_samp(n, k)
regr_slope(n, k)
bool_and(b)
bool_or(b)
every(b)
bit_and(k)
bit_or(k)
bit_xor(k)
string_agg(t, ',' ORDER BY t)
array_agg(n ORDER BY n DESC)
sum(i) FILTER (WHERE k = 2)
percentile_cont(0.5) WITHIN GROUP (ORDER BY v)
percentile_disc(0.5) WITHIN GROUP (ORDER BY n)
mode() WITHIN GROUP (ORDER BY k)
sum(DISTINCT k)
json_agg(n ORDER BY n)
""".strip().splitlines()

QUERIES = """
SELECT n FROM x ORDER BY i
SELECT n FROM x ORDER BY i DESC
SELECT n FROM x ORDER BY i NULLS FIRST
SELECT n FROM x ORDER BY s DESC, n
SELECT "n" FROM x WHERE K = 2 ORDER BY n
SELECT n, row_number() OVER (ORDER BY i) FROM x ORDER BY n
SELECT n, lag(i) OVER (ORDER BY n) FROM x ORDER BY n
SELECT n, sum(n) OVER (ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM x ORDER BY n
SELECT n, first_value(n) OVER w FROM x WINDOW w AS (PARTITION BY k ORDER BY n) ORDER BY n
SELECT DISTINCT ON (k) k, n FROM x ORDER BY k, n
SELECT unnest(l) AS q FROM x ORDER BY q
SELECT n, q FROM x, unnest(l) AS q ORDER BY n, q
SELECT n, q FROM x CROSS JOIN LATERAL unnest(l) WITH ORDINALITY AS u(q, o) ORDER BY n, o
SELECT g FROM generate_series(1, 5, 2) AS g ORDER BY g
SELECT n FROM x WHERE i > (SELECT avg(i) FROM x) ORDER BY n
SELECT n FROM x WHERE EXISTS (SELECT 1 FROM x y WHERE y.k = x.n) ORDER BY n
SELECT a.n, b.n FROM x a JOIN x b USING (k) ORDER BY 1, 2
SELECT a.n, b.n FROM x a LEFT JOIN x b ON a.n = b.k ORDER BY 1, 2
SELECT n FROM x ORDER BY n LIMIT 2 OFFSET 1
SELECT n FROM x ORDER BY n OFFSET 1 ROWS FETCH FIRST 2 ROWS ONLY
SELECT n FROM x UNION ALL SELECT k FROM x ORDER BY 1
SELECT n FROM x EXCEPT SELECT k FROM x ORDER BY 1
SELECT k, sum(n) FROM x GROUP BY ROLLUP (k) ORDER BY 1, 2
SELECT k, sum(n) FROM x GROUP BY GROUPING SETS ((k), ()) ORDER BY 1, 2
WITH q AS MATERIALIZED (SELECT n FROM x) SELECT count(*) FROM q
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS q (a, c) ORDER BY a
TABLE x
""".strip().splitlines()

#: forms that are not there: each ends in an error
REFUSED = frozenset(
    """
@ i
trunc(1.239, 2)
bit_length(s)
substring(s FROM 'l+')
encode(sha256(t::bytea), 'hex')
quote_literal(t)
regexp_match(s, 'l+')
regexp_substr(s, 'l+')
to_char(d, 'Day')
to_char(p, '999.99')
to_timestamp(0)
age(timestamp '2024-03-01', timestamp '2024-02-29')
date_bin('15 minutes', m, timestamp '2000-01-01')
(d, d) OVERLAPS (e, e)
array_upper(l, 1)
l || 9
array_remove(l, 1)
array_replace(l, 1, 8)
ARRAY[1, 2] = ARRAY[1, 2]
'{"a": 1}'::jsonb ? 'a'
'{"a": {"b": 3}}'::json #>> '{a,b}'
json_array_length('[1, 2]')
num_nulls(i, v)
num_nonnulls(i, v)
trim_scale(p)
scale(p)
unistr('d\\0061t')
percentile_disc(0.5) WITHIN GROUP (ORDER BY n)
json_agg(n ORDER BY n)
SELECT n, q FROM x CROSS JOIN LATERAL unnest(l) WITH ORDINALITY AS u(q, o) ORDER BY n, o
TABLE x
make_interval(days => 3)
make_interval(days := 3)
""".strip().splitlines()
)
