// JSON as in RFC 8259. Text is UTF-8; a string has no control characters.
%start value

SKIP : "/[ \t\n\r]+/" ;
STRING : '/"([^"\\\x00-\x1F]|\\(["\\\/bfnrt]|u[0-9A-Fa-f]{4}))*"/' ;
NUMBER : "/-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/" ;

value : object | array | STRING | NUMBER | "true" | "false" | "null" ;
object : "{" "}" | "{" members "}" ;
members : member | members "," member ;
member : STRING ":" value ;
array : "[" "]" | "[" values "]" ;
values : value | values "," value ;
