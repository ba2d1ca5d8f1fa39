// Arithmetic: + and - bind least, ^ binds most and to the right.
%start sum

SKIP : "/[ \t]+/" ;
NUMBER : "/[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?/" ;
NAME : "/[A-Za-z_][A-Za-z0-9_]*/" ;

sum : product | sum "+" product | sum "-" product ;
product : signed | product "*" signed | product "/" signed ;
signed : power | "-" signed ;
power : atom | atom "^" signed ;
atom : NUMBER | NAME | NAME "(" arguments ")" | "(" sum ")" ;
arguments : | some_arguments ;
some_arguments : sum | some_arguments "," sum ;
