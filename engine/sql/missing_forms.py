"""Forms of SQL that are not there, by what the planner says of them or by their words: what to write instead.

    FORMS         unsupported ast node in sqltorel: Pivot {...    PIVOT is not there; write ...
    IN_TEXT       f ^ 2                                           a sign that dialects take for different functions
    STATEMENTS    EXPLAIN SELECT 1                                no query: what it is in Python

Held by: tests/sql/test_planner_errors.py
"""

from __future__ import annotations

import re
from typing import Final

_PIVOT: Final = "PIVOT and UNPIVOT are not there; write sum(CASE WHEN ...), or data.pivot(...) in Python"
_JSON: Final = "-> is not there; write s ->> '$.a', or json_extract_string(s, '$.a')"
#: the planner's message, our sentence for it, and the word of the text that it points at
FORMS: Final[tuple[tuple[re.Pattern[str], str, str], ...]] = tuple(
    (re.compile(pattern), sentence, word)
    for pattern, sentence, word in (
        (r"[Uu]nsupported ast node\W+(?:\w+\W+)*?(?:Pivot|Unpivot) ", _PIVOT, "PIVOT"),
        (
            r"[Uu]nsupported ast node.*?: Collate\b",
            "COLLATE is not there; texts compare by bytes, write lower(s)",
            "COLLATE",
        ),
        (r"[Uu]nsupported binary operator: PGOverlap", "&& is not there; write AND", "&"),
        (r"[Oo]perator DIV is not yet supported", "// is not there; integers divide to integers with /", "/"),
        (r"[Oo]perator ->>? is not yet supported", _JSON, "-"),
        (r"[Uu]nsupported SQL unary operator BitwiseNot", "~ is not there; write xor(x, -1)", "~"),
        (r"^TOP$", "TOP is not there; write LIMIT at the end of the query", "TOP"),
        (r"^FETCH clause", "FETCH FIRST ... WITH TIES; write QUALIFY rank() OVER (ORDER BY ...) <= 3", "FETCH"),
        (r"[Jj]oin condition should not be empty", "a join that keeps rows needs ON a.k = b.k, or USING (k)", "JOIN"),
        (r"[Ee]mpty tuple not supported", "() is not there; without GROUP BY all rows are one group", "GROUP"),
        (r"[Dd]ot access not supported", "a field of what is no column; write struct_extract({'a': 1}, 'a')", "."),
        (
            r"\[return_type\] (\w+) not supported for (?:NULL|Null)",
            "NULL alone has no type; write CAST(NULL AS INTEGER)",
            "NULL",
        ),
        (r"subquery can only be used in", "a query in ORDER BY; write it in the list of SELECT, with a name", "ORDER"),
        (
            r"Internal error|after optimizer rule",
            "a query within this expression has no plan; write it in WHERE, or a join",
            "SELECT",
        ),
        (r"[Nn]o SQL statements were provided", "there is no statement in the text", ""),
        (
            r"No field named .*Valid fields are \"(?:ROLLUP|CUBE|GROUPING SETS) ",
            "a key of ROLLUP or CUBE that is computed of several types; compute it in a query of FROM",
            "GROUP",
        ),
        (r"^SHOW TABLES is not supported", "SHOW TABLES is no query; write list(env.tables)", "SHOW"),
        (r"^MINUS not implemented", "MINUS is not there; write EXCEPT", "MINUS"),
        (r"[Ee]xpected LIMIT to be an integer", "LIMIT takes a number of rows", "LIMIT"),
    )
)

_POWER: Final = "^, a power in some dialects and bits in others (write power(a, b), or xor(a, b))"
#: patterns in texts without their quoted parts, with the same
IN_TEXT: Final[tuple[tuple[re.Pattern[str], str, str], ...]] = (
    (re.compile(r"\^"), _POWER, "^"),
    (re.compile(r"\*\s*\*(?=\s*[\w(.])"), "the operator ** (write power(a, b))", "*"),
    (
        re.compile(r"\bUSING\s+SAMPLE\b", re.IGNORECASE),
        "USING SAMPLE (write data.sample(fraction, seed) in Python)",
        "USING",
    ),
    (
        re.compile(r"\bTABLESAMPLE\b", re.IGNORECASE),
        "TABLESAMPLE (write data.sample(fraction, seed) in Python)",
        "TABLESAMPLE",
    ),
    (re.compile(r"\bASOF\s+JOIN\b", re.IGNORECASE), "ASOF JOIN (write data.asof_join(...) in Python)", "ASOF"),
)

_WRITE: Final = "data.write_parquet(path, mode=...)"
_REGISTER: Final = "env.register(name, env.sql('SELECT ...'))"
#: words that begin a statement which the planner would misread
NO_QUERIES: Final = re.compile(
    r"\s*(?:INSERT|UPDATE|DELETE|MERGE|COPY|SET|PRAGMA|SUMMARIZE|PIVOT|UNPIVOT|TRUNCATE)\b", re.IGNORECASE
)
#: statements that begin with a word, and their equivalent in Python
STATEMENTS: Final[dict[str, str]] = {
    "EXPLAIN": "env.sql('SELECT ...').explain()",
    "DESCRIBE": "env.sql('SELECT * FROM name').schema",
    "DESC": "env.sql('SELECT * FROM name').schema",
    "SUMMARIZE": "env.sql('SELECT * FROM name').describe()",
    "PIVOT": "data.pivot(on, values, index, agg)",
    "UNPIVOT": "data.unpivot(on, index)",
    "CREATE": _REGISTER,
    "DROP": "env.unregister(name)",
    "INSERT": _WRITE,
    "UPDATE": _WRITE,
    "DELETE": _WRITE,
    "MERGE": _WRITE,
    "TRUNCATE": _WRITE,
    "COPY": _WRITE,
    "SET": "Environment(config={...})",
    "PRAGMA": "Environment(config={...})",
}
