"""Expressions that Spark answers, in its dialect."""

EXPRESSIONS = """
i / k
i DIV k
i % k
-i % k
7 / 2
7 DIV 2
-7 DIV 2
p / 4
p * 3
p + 1
v / k
i & k
i | k
i ^ k
~k
shiftleft(1, 4)
shiftright(256, 2)
bit_count(k)
abs(i)
round(p, 1)
round(2.5)
round(-2.5)
round(v)
bround(2.5)
bround(3.5)
round(i, -1)
floor(v)
ceil(v)
ceiling(p)
sign(i)
signum(v)
sqrt(k)
cbrt(27)
exp(0)
ln(k)
log(2, 8)
log10(100)
log2(8)
log1p(0)
log1p(i)
ln(i)
log(k, i)
log10(v)
log2(v)
left(s, i)
right(s, -1)
flatten(array(l, array(1)))
arrays_overlap(l, array(5, n))
arrays_overlap(array(1, i), array(2))
arrays_overlap(array(1, null), array())
expm1(0)
power(k, 2)
pow(k, 2)
mod(i, k)
pmod(i, k)
greatest(i, k)
least(i, k)
factorial(5)
pi()
e()
degrees(pi())
radians(180)
sin(0)
atan2(1, 1)
hypot(3, 4)
rint(2.5)
isnan(v)
nanvl(v, 0)
hex(17)
bin(k)
conv('ff', 16, 10)
width_bucket(5.3, 0, 10, 5)
length(s)
char_length(s)
octet_length(s)
bit_length(s)
upper(s)
ucase(s)
lower(s)
lcase(s)
initcap(s)
reverse(s)
left(s, 3)
right(s, 3)
substr(s, 2, 3)
substring(s, 2)
substring(s, 0, 3)
substring(s, -3)
substring(s, -3, 2)
substring(s, 3, -1)
substring(s, k, i)
timestampdiff(MONTH, DATE '2024-01-31', DATE '2024-02-29')
substring(s FROM 2 FOR 3)
substring_index(s, ',', 2)
position('o' IN s)
locate('o', s)
locate('o', s, 6)
instr(s, 'o')
contains(s, 'o')
startswith(s, 'He')
endswith(s, 'd')
replace(s, 'l', 'L')
replace(s, 'l')
translate(s, 'lo', 'xy')
overlay('abcdef' PLACING 'XX' FROM 2 FOR 3)
trim('  x ')
trim(BOTH 'x' FROM 'xxaxx')
btrim('  x ')
ltrim('  x')
rtrim('x  ')
lpad(t, 5, '-')
rpad(t, 5, '-')
lpad(t, 3)
repeat(t, 3)
space(2)
concat(s, t)
concat(s, NULL)
concat_ws('-', s, t)
s || t
split(s, ',')
split(s, ',', 2)
split_part(s, ',', 2)
split_part(s, '', 1)
ascii(t)
char(65)
chr(65)
md5(t)
sha2(t, 256)
sha1(t)
crc32(t)
base64(t)
unhex('41')
encode(t, 'utf-8')
format_string('%s-%d', s, n)
format_number(1234.5, 2)
soundex(t)
levenshtein(s, t)
s RLIKE 'l+'
rlike(s, 'l+')
regexp(s, 'l+')
regexp_like(s, 'l+')
regexp_replace(s, 'l', 'L')
regexp_replace(s, '(l+)', '<$1>')
regexp_extract(s, '(\\\\w+) (\\\\w+)', 2)
regexp_extract(s, '(\\\\w+)')
regexp_extract_all(s, '([a-z])')
regexp_count(s, 'l')
regexp_substr(s, 'l+')
s LIKE 'H%'
s NOT LIKE '%b%'
s ILIKE 'h%'
parse_url('http://a.b/c?d=e', 'HOST')
parse_url('http://a.b/c?d=e', 'QUERY', 'd')
CASE WHEN i > 0 THEN 'p' WHEN i < 0 THEN 'n' ELSE 'z' END
CASE t WHEN 'o' THEN 1 END
coalesce(i, -1)
nvl(i, 0)
nvl2(i, 1, 2)
ifnull(i, 0)
nullif(i, 0)
zeroifnull(i)
if(b, 1, 2)
decode(t, 'o', 1, 'b', 2, 3)
i IS NULL
isnull(i)
isnotnull(i)
i <=> NULL
i <=> 7
b IS TRUE
b IS NOT FALSE
NOT b
! b
b AND i > 0
b OR i IS NULL
i == 7
i != 7
i BETWEEN 0 AND 10
i IN (7, 0)
i NOT IN (7, NULL)
CAST(v AS INT)
CAST(2.5 AS INT)
CAST(-2.5 AS INT)
int(2.7)
bigint('12') + 1
string(i)
CAST(i AS DECIMAL(10, 1))
CAST(b AS INT)
CAST(b AS STRING)
CAST(d AS STRING)
TRY_CAST(s AS INT)
CAST('2024-01-05' AS DATE)
date('2024-01-05')
to_date('2024-01-05')
to_date('05.01.2024', 'dd.MM.yyyy')
to_timestamp('2024-01-05 10:11:12')
to_timestamp('05.01.2024 10:11', 'dd.MM.yyyy HH:mm')
year(d)
month(d)
day(d)
dayofmonth(d)
quarter(d)
weekofyear(d)
dayofweek(d)
weekday(d)
dayofyear(d)
hour(m)
minute(m)
second(m)
extract(YEAR FROM d)
extract(DOW FROM d)
extract(DAYOFWEEK FROM d)
extract(DOW_ISO FROM d)
extract(WEEK FROM d)
extract(SECOND FROM m)
date_part('month', m)
datepart('day', m)
dayname(d)
monthname(d)
last_day(d)
next_day(d, 'MON')
trunc(d, 'MM')
trunc(d, 'YEAR')
trunc(d, 'week')
date_trunc('MONTH', m)
date_trunc('week', m)
date_trunc('HOUR', m)
datediff(d, e)
date_diff(d, e)
datediff(MONTH, e, d)
date_add(d, 3)
date_sub(d, 1)
dateadd(DAY, 3, d)
add_months(d, 1)
months_between(d, e)
months_between(m, e)
months_between(e, m)
add_months(m, 1)
trunc(m, 'MM')
to_utc_timestamp(m, 'Europe/Berlin')
from_utc_timestamp(m, 'Europe/Berlin')
from_utc_timestamp(timestamp'2024-07-01 12:00:00', 'Europe/Berlin')
to_utc_timestamp(timestamp'2024-07-01 12:00:00', 'Europe/Berlin')
sequence(d, d + interval 2 days, interval 1 day)
sequence(d, e, interval 1 month)
to_json(named_struct('a', 1, 'b', null))
timestampdiff(HOUR, m, TIMESTAMP '2024-03-01 00:00:00')
timestampadd(HOUR, 5, m)
d + 3
d + INTERVAL 1 MONTH
d - INTERVAL '1' DAY
m + INTERVAL 36 HOURS
make_date(2024, 2, 29)
date_format(m, 'yyyy/MM/dd HH:mm:ss')
date_format(d, 'EEEE')
date_format(d, 'MMM yy')
date_format(m, 'HH:mm:ss.SSS')
date_format(m, 'QQQ')
date_format(m, 'u')
to_date('05.01.2024', 'dd.LL.yyyy')
unix_timestamp('2024-01-05 00:00:00')
unix_timestamp('05.01.2024', 'dd.MM.yyyy')
from_unixtime(0)
from_unixtime(0, 'yyyy')
unix_date(d)
unix_seconds(TIMESTAMP '2024-01-05 00:00:00')
date_from_unix_date(1)
timestamp_seconds(0)
d > DATE '2000-01-01'
d = '2024-02-29'
m > '2020-01-01'
w[0]
element_at(w, 1)
element_at(w, -1)
get(l, 0)
size(l)
cardinality(l)
array_size(l)
array_contains(l, 2)
array_contains(l, i)
array_contains(array(1, NULL), 2)
array_position(l, 2)
array_sort(l)
sort_array(l)
sort_array(l, false)
array_max(l)
array_min(l)
array_distinct(l)
array_append(l, 9)
array_prepend(l, 9)
array_compact(array(1, NULL))
array_remove(l, 1)
array_union(l, array(9))
array_intersect(l, array(1))
array_except(l, array(1))
arrays_overlap(l, array(1))
array_join(w, '+')
array_repeat(t, 2)
concat(l, array(9))
flatten(array(array(1), array(2, 3)))
slice(l, 1, 2)
slice(l, 2, 2)
slice(l, -2, 2)
sequence(1, 3)
sequence(3, 1)
sequence(1, 7, 2)
reverse(l)
array(n, k)
transform(l, q -> q + 1)
filter(l, q -> q > 1)
exists(l, q -> q > 1)
forall(l, q -> q > 1)
aggregate(l, 0L, (a, q) -> a + q)
map('x', n)['x']
map_keys(map('x', n))
map_values(map('x', n))
named_struct('a', n, 'b', t).a
struct(n, t).n
get_json_object('{"a": {"b": 3}}', '$.a.b')
try_divide(i, 0)
try_add(i, 1)
typeof(1)
hash(t) = hash(t)
xxhash64(t) = xxhash64(t)
1L + 1
1.5D
2.50BD
"text"
'it''s'
'a\\tb'
""".strip().splitlines()

AGGREGATES = """
count(*)
count(i)
count(DISTINCT k)
count(DISTINCT k, b)
sum(i)
sum(p)
sum(v)
avg(i)
mean(i)
min(s)
max(d)
median(v)
mode(k)
percentile(v, 0.25)
percentile_approx(n, 0.5)
stddev(v)
stddev_pop(v)
stddev_samp(v)
std(v)
variance(v)
var_samp(v)
var_pop(v)
corr(n, k)
covar_pop(n, k)
covar_samp(n, k)
skewness(n)
kurtosis(n)
bool_and(b)
bool_or(b)
every(b)
some(b)
any(b)
bit_and(k)
bit_or(k)
bit_xor(k)
max_by(t, n)
min_by(t, n)
count_if(i > 0)
sum(i) FILTER (WHERE k = 2)
sort_array(collect_list(k))
sort_array(collect_set(k))
array_sort(collect_list(i))
array_agg(n)
sum(DISTINCT k)
approx_count_distinct(k)
listagg(t, ',') WITHIN GROUP (ORDER BY t)
""".strip().splitlines()

QUERIES = """
SELECT n FROM x ORDER BY i
SELECT n FROM x ORDER BY i DESC
SELECT n FROM x ORDER BY i NULLS LAST
SELECT n FROM x ORDER BY s DESC, n
SELECT `n` FROM `x` WHERE K = 2 ORDER BY n
SELECT n, row_number() OVER (ORDER BY i) FROM x ORDER BY n
SELECT n, lag(i) OVER (ORDER BY n) FROM x ORDER BY n
SELECT n, sum(n) OVER (ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM x ORDER BY n
SELECT q FROM x LATERAL VIEW explode(l) y AS q ORDER BY q
SELECT n, q FROM x LATERAL VIEW OUTER explode(l) y AS q ORDER BY n, q
SELECT n, o, q FROM x LATERAL VIEW posexplode(l) y AS o, q ORDER BY n, o
SELECT n, o, q FROM x LATERAL VIEW OUTER posexplode(l) y AS o, q ORDER BY n, o
SELECT n, o, q FROM x LATERAL VIEW posexplode_outer(w) y AS o, q ORDER BY n, o
SELECT n, q FROM x LATERAL VIEW explode_outer(l) y AS q ORDER BY n, q
SELECT n, pos, y.col FROM x LATERAL VIEW posexplode(l) y ORDER BY n, pos
SELECT explode(l) AS q FROM x ORDER BY q
SELECT explode_outer(l) FROM x
SELECT posexplode(l) FROM x
SELECT stack(2, 1, 2) FROM x
SELECT n, explode(l) AS q FROM x ORDER BY n, q
SELECT n FROM x WHERE i > (SELECT avg(i) FROM x) ORDER BY n
SELECT a.n, b.n FROM x a JOIN x b USING (k) ORDER BY 1, 2
SELECT a.n FROM x a LEFT SEMI JOIN x b ON a.n = b.k ORDER BY 1
SELECT a.n FROM x a LEFT ANTI JOIN x b ON a.n = b.k ORDER BY 1
SELECT /*+ BROADCAST(b) */ a.n FROM x a JOIN x b ON a.n = b.k ORDER BY 1
SELECT n FROM x ORDER BY n LIMIT 2 OFFSET 1
SELECT n FROM x UNION ALL SELECT k FROM x ORDER BY 1
SELECT n FROM x MINUS SELECT k FROM x ORDER BY 1
SELECT k, sum(n) FROM x GROUP BY ROLLUP (k) ORDER BY 1, 2
SELECT k, sum(n) FROM x GROUP BY k WITH ROLLUP ORDER BY 1, 2
SELECT k, sum(n) FROM x GROUP BY k WITH CUBE ORDER BY 1, 2
SELECT k, grouping_id() FROM x GROUP BY ROLLUP (k) ORDER BY 1, 2
SELECT k, sum(n) AS q FROM x GROUP BY k HAVING q > 2 ORDER BY k
SELECT * EXCEPT (l, w, d, e, m) FROM x ORDER BY n
SELECT * FROM VALUES (1, 'a'), (2, 'b') AS q (a, c) ORDER BY a
SELECT * FROM range(3) ORDER BY id
WITH q AS (SELECT n FROM x) SELECT count(*) FROM q
SELECT n, q FROM x, LATERAL (SELECT i + 1 AS q) ORDER BY n
""".strip().splitlines()

#: forms that are not there: each ends in an error
REFUSED = frozenset(
    """
conv('ff', 16, 10)
sequence(d, e, interval 1 month)
to_json(named_struct('a', 1, 'b', null))
bit_length(s)
initcap(s)
substring_index(s, ',', 2)
replace(s, 'l')
split(s, ',', 2)
encode(t, 'utf-8')
format_number(1234.5, 2)
soundex(t)
regexp_extract_all(s, '([a-z])')
regexp_substr(s, 'l+')
timestamp_seconds(0)
get(l, 0)
array_position(l, 2)
sort_array(l, false)
array_compact(array(1, NULL))
array_remove(l, 1)
array_intersect(l, array(1))
array_except(l, array(1))
reverse(l)
try_add(i, 1)
typeof(1)
hash(t) = hash(t)
count(DISTINCT k, b)
skewness(n)
kurtosis(n)
SELECT explode_outer(l) FROM x
SELECT posexplode(l) FROM x
SELECT stack(2, 1, 2) FROM x
date_format(m, 'HH:mm:ss.SSS')
date_format(m, 'QQQ')
date_format(m, 'u')
to_date('05.01.2024', 'dd.LL.yyyy')
SELECT k, grouping_id() FROM x GROUP BY ROLLUP (k) ORDER BY 1, 2
""".strip().splitlines()
)
