"""Functions of lists, maps and structs as people write them, and what DuckDB calls them: "" is the same.

Held by: tests/sql/test_function_calls.py
"""

from __future__ import annotations

from typing import Final

NESTED: Final[dict[str, str]] = {
    "exists(l, q -> q > 2)": "CASE WHEN len(list_filter(l, lambda q: q > 2)) > 0 THEN true"
    " WHEN len(l) = list_count(l) THEN false END",
    "forall(l, q -> q > n)": "CASE WHEN len(list_filter(l, lambda q: NOT (q > n))) > 0 THEN false"
    " WHEN len(l) = list_count(l) THEN true END",
    "zip_with(l, [10, n, 30, 40], (q, r) -> q + r)": "CASE WHEN l IS NOT NULL THEN list_transform("
    "list_zip(l, [10, n, 30, 40]), lambda e: e[1] + e[2]) END",
    "zip_with(l, CASE WHEN n > 2 THEN [n] END, (q, r) -> coalesce(q, 0) - coalesce(r, 0))": "CASE WHEN l IS NOT NULL"
    " AND n > 2 THEN list_transform(list_zip(l, [n]), lambda e: coalesce(e[1], 0) - coalesce(e[2], 0)) END",
    "list_reverse(l)": "",
    "array_reverse(ls)": "list_reverse(ls)",
    "list_sort(list_intersect(l, [1, 2, NULL]))": "",
    "list_sort(array_union(l, [9, 1]))": "CASE WHEN l IS NOT NULL THEN list_sort(list_distinct(list_concat(l, [9, 1]))"
    " || CASE WHEN list_contains(l, NULL) OR len(l) > list_count(l) THEN [NULL] ELSE [] END) END",
    "len(array_except(l, [1, 2]))": "len(list_distinct(list_filter(l, lambda x: x NOT IN (1, 2)))) +"
    " CASE WHEN len(l) > list_count(l) THEN 1 ELSE 0 END",
    "len(array_symmetric_difference(l, []))": "len(list_distinct(l)) +"
    " CASE WHEN len(l) > list_count(l) THEN 1 ELSE 0 END",
    "array_compact(l)": "list_filter(l, lambda x: x IS NOT NULL)",
    "map_entries(map_from_arrays(['a', 'b'], [i, j]))": "map_entries(MAP(['a', 'b'], [i, j]))",
    "map_entries(map_concat(MAP {'a': i}, MAP {'b': j}, MAP {'c': n}))": "",
    "map_entries(map_filter(MAP {'a': i, 'b': j}, (k, v) -> v > 2))": "list_filter(map_entries("
    "MAP {'a': i, 'b': j}), lambda e: e['value'] > 2)",
    "map_entries(map_filter(MAP {'a': i, 'b': j}, (k, v) -> k = 'a' OR v > n))": "list_filter(map_entries("
    "MAP {'a': i, 'b': j}), lambda e: e['key'] = 'a' OR e['value'] > n)",
    "map_entries(transform_values(MAP {'a': i, 'b': j}, (k, v) -> k || coalesce(v, n)))": "map_entries("
    "MAP {'a': 'a' || coalesce(i, n), 'b': 'b' || coalesce(j, n)})",
    "map_entries(transform_keys(MAP {'a': i, 'b': j}, (k, v) -> upper(k)))": "map_entries(MAP {'A': i, 'B': j})",
    "len(list_zip(l, ls))": "len(list_zip(coalesce(l, []), coalesce(ls, [])))",
    "list_transform(array_zip(l, ls), lambda x: x.c1)": "list_transform(list_zip(coalesce(l, []),"
    " coalesce(ls, [])), lambda x: x[2])",
    "arrays_zip([i], [j, n])[2].c1": "n",
    "array_repeat(i, 2)": "[i, i]",
    "array_remove(l, 2)": "list_filter(l, lambda x: x IS DISTINCT FROM 2)",
    "arrays_overlap(l, [1, n])": "list_has_any(l, [1, n])",
    "list_has_any(l, [1, n])": "",
    "list_has_all(l, [n, NULL])": "",
    "list_has_any(ls, string_split(s, ','))": "",
    "struct_insert({'a': i}, b := j, c := s)": "",
    "struct_update({'a': i, 'b': j}, a := s)": "",
    "named_struct('a', i, 'b', j)": "{'a': i, 'b': j}",
}
