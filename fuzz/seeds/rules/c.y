// A part of C: no types of one's own but structs by name, no preprocessor, if with its statements in braces.
%start unit

SKIP : "/[ \t\r\n]+/" | "//\*[^*]*\*+([^*/][^*]*\*+)*//" | "///[^\n]*/" ;
NAME : "/[A-Za-z_][A-Za-z0-9_]*/" ;
INTEGER : "/0[xX][0-9A-Fa-f]+[uUlL]?/" | "/[0-9]+[uUlL]?/" ;
REAL : "/[0-9]+\.[0-9]+([eE][+-]?[0-9]+)?[fF]?/" ;
CHARACTER : "/'([^'\\\n]|\\[^\n])'/" ;
STRING : '/"([^"\\\n]|\\[^\n])*"/' ;

unit : outer | unit outer ;
outer : declaration | type declarator "(" parameters ")" block
      | "struct" NAME "{" members "}" ";" ;
members : type declarator ";" | members type declarator ";" ;
type : "void" | "char" | "int" | "long" | "unsigned" | "float" | "double" | "struct" NAME | "const" type ;
declarator : NAME | "*" declarator ;
sized : declarator | sized "[" INTEGER "]" ;
declaration : type variables ";" ;
variables : variable | variables "," variable ;
variable : sized | sized "=" initial ;
initial : assignment | "{" initials "}" ;
initials : initial | initials "," initial ;
parameters : | "void" | some_parameters ;
some_parameters : type declarator | some_parameters "," type declarator ;

block : "{" statements "}" ;
statements : | statements statement ;
statement : declaration | block | simple
          | "if" "(" expression ")" block otherwise
          | "while" "(" expression ")" block
          | "do" block "while" "(" expression ")" ";"
          | "for" "(" simple simple ")" block
          | "for" "(" simple simple expression ")" block
          | "return" simple | "break" ";" | "continue" ";" ;
simple : ";" | expression ";" ;
otherwise : | "else" block | "else" "if" "(" expression ")" block otherwise ;

expression : assignment | expression "," assignment ;
assignment : choice | unary assigns assignment ;
assigns : "=" | "+=" | "-=" | "*=" | "/=" | "%=" | "&=" | "|=" | "^=" | "<<=" | ">>=" ;
choice : either | either "?" expression ":" choice ;
either : both | either "||" both ;
both : bit_or | both "&&" bit_or ;
bit_or : bit_xor | bit_or "|" bit_xor ;
bit_xor : bit_and | bit_xor "^" bit_and ;
bit_and : equality | bit_and "&" equality ;
equality : relation | equality "==" relation | equality "!=" relation ;
relation : shifted | relation "<" shifted | relation ">" shifted | relation "<=" shifted | relation ">=" shifted ;
shifted : sum | shifted "<<" sum | shifted ">>" sum ;
sum : product | sum "+" product | sum "-" product ;
product : unary | product "*" unary | product "/" unary | product "%" unary ;
unary : postfix | "++" unary | "--" unary | operator unary | "sizeof" "(" type ")" ;
operator : "&" | "*" | "+" | "-" | "~" | "!" ;
postfix : primary | postfix "[" expression "]" | postfix "(" ")" | postfix "(" arguments ")"
        | postfix "." NAME | postfix "->" NAME | postfix "++" | postfix "--" ;
arguments : assignment | arguments "," assignment ;
primary : NAME | INTEGER | REAL | CHARACTER | STRING | "(" expression ")" ;
