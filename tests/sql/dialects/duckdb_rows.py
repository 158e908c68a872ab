"""Expressions that DuckDB answers, in its dialect."""

EXPRESSIONS = """
i / k
i // k
i % k
-i // k
-i % k
7 / 2
7 // 2
-7 // 2
-7 % 2
7.0 / 2
p / 3
p * 3
p + 1
p - 0.5
p % 1
v / k
v * 2
2 ** 10
k ^ 2
abs(i)
round(v)
round(p, 1)
round(2.5)
round(-2.5)
round(i, -1)
floor(v)
ceil(v)
ceiling(v)
trunc(v)
sign(i)
sqrt(k)
cbrt(27)
exp(0)
ln(k)
log(100)
log2(8)
log10(1000)
power(k, 2)
pow(k, 3)
mod(i, k)
greatest(i, k)
least(i, k)
gcd(12, 18)
lcm(4, 6)
factorial(5)
even(v)
pi()
degrees(pi())
radians(180)
sin(0)
cos(0)
atan2(1, 1)
isnan(v)
isfinite(v)
i & k
i | k
xor(i, k)
1 << 4
256 >> 2
bit_count(k)
length(s)
strlen(s)
upper(s)
lower(s)
ucase(s)
lcase(s)
reverse(s)
left(s, 3)
right(s, 3)
left(s, -2)
substr(s, 2, 3)
substring(s, 2)
substr(s, -3)
substr(s, -3, 2)
substr(s, 4, -2)
substr(s, -2, -2)
substr(s, 9, i)
substring(s, i, -k)
(1, NULL) = (1, NULL)
(i, v) <> (i, 2.5)
(i, v) < (7, 2.5)
(i, v) <= (-7, v)
(i, v) > (7, 1.5)
(7, NULL) >= (i, v)
(i, v) IN ((7, 2.5), (NULL, NULL))
(i, v) NOT IN ((7, 2.5))
(n, i) BETWEEN (1, 7) AND (3, NULL)
(n, i) NOT BETWEEN (1, 7) AND (3, -1)
ROW(i, v) = ROW(NULL, NULL)
ROW() = ROW()
substring(s FROM 2 FOR 3)
s[1:3]
s[2]
position('o' IN s)
strpos(s, 'o')
instr(s, 'l')
contains(s, 'o')
starts_with(s, 'He')
ends_with(s, 'd')
prefix(s, 'a')
suffix(s, 'c')
replace(s, 'l', 'L')
translate(s, 'lo', 'xy')
trim('  x ')
ltrim('xxa', 'x')
rtrim('axx', 'x')
lpad(t, 5, '-')
rpad(t, 5, '-')
repeat(t, 3)
concat(s, t, n)
concat(s, NULL)
concat_ws('-', s, t)
s || t
split_part(s, ',', 2)
split_part(s, ',', -1)
split_part(s, '', 1)
split_part(s, '', -1)
string_split(s, ',')
str_split(s, ',')
ascii(t)
ord(t)
chr(65)
md5(t)
sha256(t)
hex(k)
to_hex(k)
bin(k)
to_base64(encode(t))
format('{}-{}', s, n)
printf('%d-%s', n, t)
regexp_matches(s, 'l+')
regexp_full_match(t, '[a-o]')
regexp_replace(s, 'l', 'L')
regexp_replace(s, 'l', 'L', 'g')
regexp_extract(s, '(\\w+) (\\w+)', 2)
regexp_extract_all(s, '[a-z]')
s LIKE 'H%'
s NOT LIKE '%b%'
s ILIKE 'h%'
s SIMILAR TO '.*o.*'
s ~ 'a,b,c'
s LIKE 'a!,%' ESCAPE '!'
'%_\\' LIKE '%\\%'
('%_\\' || t) ILIKE ('%\\' || t)
concat(t, '%') LIKE 'o\\%' ESCAPE '\\'
concat(t, '\\') LIKE 'O\\' OR concat(t, '\\') ILIKE 'O\\'
levenshtein(s, t)
jaccard('duck', 'luck')
hamming('abc', 'abd')
url_encode(s)
bar(k, 0, 10, 5)
CASE WHEN i > 0 THEN 'p' WHEN i < 0 THEN 'n' ELSE 'z' END
CASE t WHEN 'o' THEN 1 END
coalesce(i, -1)
ifnull(i, 0)
nullif(i, 0)
if(b, 1, 2)
i IS NULL
i IS NOT DISTINCT FROM NULL
b IS TRUE
b IS NOT FALSE
NOT b
b AND i > 0
b OR i IS NULL
i BETWEEN 0 AND 10
i IN (7, 0)
i NOT IN (7, NULL)
n IN (1, 2)
CAST(v AS INTEGER)
CAST(s AS VARCHAR)
v::INT
'12'::INT + 1
TRY_CAST(s AS INTEGER)
CAST(b AS INTEGER)
CAST(p AS DOUBLE)
CAST(i AS DECIMAL(10, 1))
CAST('2024-01-05' AS DATE)
CAST(d AS VARCHAR)
CAST(m AS DATE)
year(d)
month(d)
day(d)
quarter(d)
week(d)
weekofyear(d)
dayofweek(d)
isodow(d)
weekday(d)
dayofyear(d)
yearweek(d)
isoyear(d)
decade(d)
century(d)
hour(m)
minute(m)
second(m)
millisecond(m)
microsecond(m)
epoch(m)
epoch_ms(m)
extract(dow FROM d)
extract(week FROM d)
extract(year FROM m)
date_part('month', m)
dayname(d)
monthname(d)
last_day(d)
date_trunc('month', d)
date_trunc('week', m)
date_trunc('hour', m)
date_diff('day', e, d)
date_diff('month', e, d)
date_diff('year', e, d)
date_diff('week', e, d)
datediff('day', e, d)
datesub('month', e, d)
date_add(d, INTERVAL 3 DAY)
d + 3
d - 1
d - e
d + INTERVAL 1 MONTH
m + INTERVAL '36 hours'
m - INTERVAL (n) DAY
age(TIMESTAMP '2024-03-01', TIMESTAMP '2024-02-29')
make_date(2024, 2, 29)
make_timestamp(2024, 2, 29, 1, 2, 3.5)
strftime(m, '%Y/%m/%d %H:%M')
strptime('05.01.2024', '%d.%m.%Y')
time_bucket(INTERVAL '1 day', m)
d > DATE '2000-01-01'
m > '2020-01-01'
l[1]
l[-1]
l[1:2]
len(l)
array_length(l)
list_contains(l, 2)
list_has(l, 2)
list_position(l, 2)
list_sort(l)
list_reverse_sort(l)
list_sum(l)
list_max(l)
list_min(l)
list_avg(l)
list_sort(list_distinct(l))
list_sort(list_distinct([i, NULL, i, k]))
list_sort([i, 5], 'DESC')
list_sort([i, 5], 'DESC', 'NULLS FIRST')
list_sort([i, 5], 'ASC', 'NULLS FIRST')
list_reverse_sort([i, 5])
i = v IS NULL
v > 2 IS NOT NULL
NOT b IS NULL
i IN (7, NULL) IS NULL
list_concat(l, [9])
list_append(l, 9)
list_prepend(9, l)
list_slice(l, 2, 3)
array_to_string(w, '+')
list_aggregate(l, 'sum')
list_extract(l, 1)
list_value(1, 2)
[n, k]
flatten([[1], [2, 3]])
range(3)
range(1, 4)
generate_series(1, 3)
{'a': n, 'b': t}.a
struct_pack(a := n).a
struct_extract({'a': n}, 'a')
map(['x'], [n])['x']
cardinality(map(['x'], [n]))
map_keys(map(['x'], [n]))
json_extract_string('{"a": "q"}', '$.a')
'{"a": {"b": 3}}'::JSON ->> '$.a.b'
'{"a.b": 3}' ->> 'a.b'
'{"a": {"b": 3}}' ->> '/a/b'
hash(t) = hash(t)
""".strip().splitlines()

AGGREGATES = """
count_if(n > 100)
count_if(v > 0) FILTER (n > 100)
count_if(i < 0)
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
median(v)
mode(k)
quantile_cont(v, 0.25)
quantile_disc(v, 0.25)
stddev(v)
stddev_pop(v)
var_samp(v)
var_pop(v)
corr(n, k)
covar_pop(n, k)
skewness(v)
kurtosis(n)
bool_and(b)
bool_or(b)
bit_and(k)
bit_or(k)
bit_xor(k)
product(k)
string_agg(t, ',' ORDER BY t)
list(t ORDER BY n)
array_agg(n ORDER BY n DESC)
first(t ORDER BY n)
last(t ORDER BY n)
arg_max(t, n)
arg_min(t, n)
max_by(t, n)
count_if(i > 0)
sum(i) FILTER (WHERE k = 2)
percentile_cont(0.5) WITHIN GROUP (ORDER BY v)
mode() WITHIN GROUP (ORDER BY k)
approx_count_distinct(k)
""".strip().splitlines()

QUERIES = """
SELECT n FROM x ORDER BY i
SELECT n FROM x ORDER BY i DESC
SELECT n FROM x ORDER BY s DESC, n
SELECT * EXCLUDE (l, w, d, e, m) FROM x ORDER BY n
SELECT n, row_number() OVER (ORDER BY i) FROM x ORDER BY n
SELECT n, lag(i) OVER (ORDER BY n) FROM x ORDER BY n
SELECT n, sum(n) OVER (ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM x ORDER BY n
SELECT n FROM x QUALIFY row_number() OVER (PARTITION BY k ORDER BY n) = 1 ORDER BY n
SELECT k, count(*) FROM x GROUP BY ALL ORDER BY ALL
SELECT DISTINCT ON (k) k, n FROM x ORDER BY k, n
SELECT unnest(l) AS q FROM x ORDER BY q
FROM x SELECT n WHERE n > 1 ORDER BY n
SELECT n FROM x WHERE i > (SELECT avg(i) FROM x) ORDER BY n
SELECT a.n, b.n FROM x a JOIN x b USING (k) ORDER BY 1, 2
SELECT a.n FROM x a SEMI JOIN x b ON a.n = b.k ORDER BY 1
SELECT a.n FROM x a ANTI JOIN x b ON a.n = b.k ORDER BY 1
SELECT n FROM x ORDER BY n LIMIT 2 OFFSET 1
SELECT n FROM x UNION ALL SELECT k FROM x ORDER BY 1
SELECT k, sum(n) FROM x GROUP BY ROLLUP (k) ORDER BY 1, 2
WITH q AS (SELECT n FROM x) SELECT count(*) FROM q
""".strip().splitlines()

#: forms that are not there: each ends in an error
REFUSED = frozenset(
    """
even(v)
s[1:3]
s[2]
to_base64(encode(t))
jaccard('duck', 'luck')
hamming('abc', 'abd')
bar(k, 0, 10, 5)
age(TIMESTAMP '2024-03-01', TIMESTAMP '2024-02-29')
hash(t) = hash(t)
quantile_disc(v, 0.25)
""".strip().splitlines()
)
