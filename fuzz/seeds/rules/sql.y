// SELECT of SQL, keywords in capitals.
%start query

SKIP : "/[ \t\r\n]+/" | "/--[^\n]*/" ;
NAME : "/[A-Za-z_][A-Za-z0-9_]*/" | '/"[^"\x00-\x1F]+"/' ;
NUMBER : "/[0-9]+(\.[0-9]+)?/" ;
STRING : "/'([^'\x00-\x1F]|'')*'/" ;

query : selection order limit | selection order limit ";" ;
selection : select | selection union select ;
union : "UNION" | "UNION" "ALL" | "INTERSECT" | "EXCEPT" ;
select : "SELECT" distinct columns from where group ;
distinct : | "DISTINCT" ;
columns : column | columns "," column ;
column : "*" | NAME "." "*" | condition | condition "AS" NAME ;
from : | "FROM" tables ;
tables : table | tables "," table ;
table : source | table join source "ON" condition ;
source : NAME | NAME NAME | NAME "AS" NAME | "(" selection ")" "AS" NAME ;
join : "JOIN" | "INNER" "JOIN" | "LEFT" outer "JOIN" | "RIGHT" outer "JOIN" | "FULL" outer "JOIN" ;
outer : | "OUTER" ;
where : | "WHERE" condition ;
group : | "GROUP" "BY" expressions having ;
having : | "HAVING" condition ;
order : | "ORDER" "BY" keys ;
keys : key | keys "," key ;
key : expression | expression "ASC" | expression "DESC" ;
limit : | "LIMIT" NUMBER | "LIMIT" NUMBER "OFFSET" NUMBER ;

// Conditions are expressions, so that both may stand in parentheses.
condition : conjunction | condition "OR" conjunction ;
conjunction : negation | conjunction "AND" negation ;
negation : test | "NOT" negation ;
test : expression | expression compare expression
     | expression "IS" "NULL" | expression "IS" "NOT" "NULL"
     | expression "LIKE" STRING | expression "NOT" "LIKE" STRING
     | expression "BETWEEN" expression "AND" expression
     | expression "IN" "(" expressions ")" | expression "NOT" "IN" "(" expressions ")"
     | expression "IN" "(" selection ")" | expression "NOT" "IN" "(" selection ")"
     | "EXISTS" "(" selection ")" ;
compare : "=" | "<>" | "<" | "<=" | ">" | ">=" ;

expressions : condition | expressions "," condition ;
expression : term | expression "+" term | expression "-" term | expression "||" term ;
term : factor | term "*" factor | term "/" factor ;
factor : atom | "-" factor ;
atom : NAME | NAME "." NAME | NUMBER | STRING | "NULL" | "TRUE" | "FALSE"
     | "(" condition ")" | "(" selection ")"
     | NAME "(" ")" | NAME "(" "*" ")" | NAME "(" expressions ")" | NAME "(" "DISTINCT" expressions ")"
     | "CASE" whens "END" | "CASE" whens "ELSE" condition "END" ;
whens : "WHEN" condition "THEN" condition | whens "WHEN" condition "THEN" condition ;
