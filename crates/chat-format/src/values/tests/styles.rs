use super::{Case, Was, gemma, keywords, qwen, tagged, typed};
use crate::dialect::{Arguments, TaggedArguments};
use serde_json::{Value, json};

fn properties(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

#[test]
fn json_is_kept_as_it_is() {
    let case = Case::new(&Arguments::Json, "", &json!({"type": "object"}));
    let text = "{ \"a\" : [1, 2.5e3,\n true],\"b\":\"\\u00e9\\n\\ud83d\\ude00é\"}";
    assert_eq!(case.lenient(&format!("{text} rest")), Was::Over(text.len(), text.to_owned()));
    assert_eq!(case.strict(text.as_bytes()), Was::Over(text.len(), text.to_owned()));
    for (text, at) in [("[1]", 0), ("{\"a\":01}", 6), ("{a:1}", 1), ("{\"a\":True}", 5), ("{\"a\":1,}", 7)] {
        assert_eq!(case.lenient(text), Was::Dead(at), "{text}");
    }
}

#[test]
fn json_strings_that_models_write_wrong_are_made_right() {
    let case = Case::new(&Arguments::Json, "", &json!({"type": "object"}));
    assert_eq!(case.json("{\"a\": \"x\ny\\d\\ud800!\"}", false), json!({"a": "x\ny\\d\u{fffd}!"}));
    let was = super::read(&case.lenient, &case.values, case.id, b"{\"a\": \"\xff\xe2\x82\"}");
    assert!(matches!(was, Was::Over(_, json) if json == "{\"a\": \"\u{fffd}\u{fffd}\"}"));
}

#[test]
fn tags_with_newlines() {
    let schema = properties(json!({
        "code": {"type": "string"}, "n": {"type": "integer"}, "safe": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
    }));
    let case = Case::new(&qwen(), "</function>", &schema);
    let text = "\n<parameter=code>\ndef f():\n    print(\"<b>\")\n\nf()\n\n</parameter>\n<parameter=n>\n1\n\
        </parameter>\n\
                <parameter=safe>\nTrue\n</parameter>\n<parameter=tags>\n['x', \"y\"]\n</parameter>\n</function>";
    let expected = json!({"code": "def f():\n    print(\"<b>\")\n\nf()\n", "n": 1, "safe": true, "tags": ["x", "y"]});
    assert_eq!(case.json(text, true), expected);
    assert_eq!(case.json("</function>", true), json!({}));
    assert_eq!(case.json("<parameter=code>a</parameter></function>", false), json!({"code": "a"}));
    assert_eq!(case.json("<parameter=n>\nmany\n</parameter>\n</function>", false), json!({"n": "many"}));
    assert_eq!(
        case.json("<parameter=other>\n{\"a\": 1}\n</parameter>\n</function>", false),
        json!({"other": {"a": 1}})
    );
    // A string that looks like JSON stays a string.
    assert_eq!(
        case.json("<parameter=code>\n{\"a\": 1}\n</parameter>\n</function>", true),
        json!({"code": "{\"a\": 1}"})
    );
    assert_eq!(case.json("<parameter=code>\n</param\n</parameter></function>", true), json!({"code": "</param"}));
}

#[test]
fn newlines_of_the_template_must_come() {
    let schema =
        properties(json!({"code": {"type": "string"}, "unit": {"enum": ["k", "k\n"]}, "n": {"type": "integer"}}));
    let case = Case::new(&qwen(), "</function>", &schema);
    for (text, value) in [
        ("code>\n\n", json!({"code": ""})),
        ("code>\n</parameter\n", json!({"code": "</parameter"})),
        ("code>\n\n\n", json!({"code": "\n"})),
        ("unit>\nk\n", json!({"unit": "k"})),
        ("unit>\nk\n\n", json!({"unit": "k\n"})),
        ("n>\n1\n", json!({"n": 1})),
    ] {
        assert_eq!(case.json(&format!("<parameter={text}</parameter></function>"), true), value);
    }
    // Without the newline the tag is text of a value that may hold it, and never its end.
    for text in ["code>\n", "code>\na"] {
        let whole = format!("<parameter={text}</parameter></function>");
        assert!(matches!(case.strict(whole.as_bytes()), Was::Dead(_)), "{text}");
        let more = format!("<parameter={text}</parameter>.\n</parameter></function>");
        assert!(matches!(case.strict(more.as_bytes()), Was::Over(..)), "{text}");
        assert!(matches!(case.strict(&[b"<parameter=", text.as_bytes(), b"\xff"].concat()), Was::Dead(_)), "{text}");
    }
    for text in ["unit>\nk", "n>\n1", "code>", "n>1\n", "code>a\n"] {
        assert!(matches!(case.strict(format!("<parameter={text}</parameter>").as_bytes()), Was::Dead(_)), "{text}");
        assert!(matches!(case.strict(&[b"<parameter=", text.as_bytes(), b"\xff"].concat()), Was::Dead(_)), "{text}");
    }
}

#[test]
fn unions_in_tags() {
    let schema = properties(json!({
        "value": {"type": ["string", "object"]}, "amount": {"type": ["string", "integer"]},
        "name": {"type": ["null", "string"]}, "unit": {"enum": ["celsius", "kelvin", null, 3]}, "any": {},
        "either": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "string"}]},
    }));
    let case = Case::new(&qwen(), "</function>", &schema);
    for (key, text, value, strict) in [
        ("value", "{\"a\": 1}", json!({"a": 1}), true),
        ("value", "{'a': 1}", json!({"a": 1}), true),
        ("value", "{not valid json", json!("{not valid json"), true),
        ("amount", "42", json!(42), true),
        ("amount", "2 dollars", json!("2 dollars"), true),
        ("amount", "1abc", json!("1abc"), true),
        ("name", "null", json!(null), true),
        ("name", "hello world", json!("hello world"), true),
        ("name", "\"hello\"", json!("\"hello\""), true),
        ("unit", "celsius", json!("celsius"), true),
        ("unit", "null", json!(null), true),
        ("unit", "3", json!(3), true),
        ("unit", "rankine", json!("rankine"), false),
        ("any", "plain", json!("plain"), true),
        ("any", "[1, 'two']", json!([1, "two"]), true),
        ("any", "\"quoted\"", json!("quoted"), true),
        ("any", "True", json!(true), true),
        ("either", "[1, 2]", json!([1, 2]), true),
        ("either", "[1, x", json!("[1, x"), true),
    ] {
        let text = format!("<parameter={key}>\n{text}\n</parameter>\n</function>");
        assert_eq!(case.json(&text, strict), json!({key: value}), "{text}");
    }
}

#[test]
fn tags_that_tell_the_type() {
    let schema = properties(json!({"city": {"type": "string"}, "n": {"type": "integer"}, "any": {}}));
    let not = &["number", "integer", "boolean", "null", "array", "object"][..];
    let opened = [("\" string=\"true\">", &["string"][..]), ("\" string=\"false\">", not)];
    let deepseek = typed("<｜DSML｜parameter name=\"", &opened, "</｜DSML｜parameter>\n");
    let case = Case::new(&deepseek, "</｜DSML｜invoke>", &schema);
    let argument = |key: &str, string: bool, value: &str| {
        format!("<｜DSML｜parameter name=\"{key}\" string=\"{string}\">{value}</｜DSML｜parameter>\n</｜DSML｜invoke>")
    };
    assert_eq!(case.json(&argument("city", true, "Paris"), true), json!({"city": "Paris"}));
    assert_eq!(case.json(&argument("n", false, "-14"), true), json!({"n": -14}));
    assert_eq!(case.json(&argument("any", true, "1"), true), json!({"any": "1"}));
    assert_eq!(case.json(&argument("any", false, "1"), true), json!({"any": 1}));
    // The tag wins over the schema, and a strict reader holds it to the schema.
    assert_eq!(case.json(&argument("n", true, "1"), false), json!({"n": "1"}));
    assert_eq!(case.json(&argument("city", false, "1"), false), json!({"city": 1}));
    let text = argument("n", true, "1");
    assert_eq!(case.strict(text.as_bytes()), Was::Dead(text.find("true").unwrap()));
}

#[test]
fn keys_and_values_in_tags_of_their_own() {
    let schema = properties(json!({"arg1": {"type": "integer"}, "b": {"type": "string"}}));
    let case = Case::new(&tagged("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n"), "</tool_call>", &schema);
    let text =
        "\n<arg_key>arg1</arg_key>\n<arg_value>1</arg_value>\n<arg_key>b</arg_key><arg_value>x</arg_value></tool_call>";
    assert_eq!(case.json(text, true), json!({"arg1": 1, "b": "x"}));
}

#[test]
fn sections_of_text() {
    let mut keyed = TaggedArguments::new("<param name=\"", "\">", "</param>");
    keyed.cdata = true;
    let schema =
        properties(json!({"markup": {"type": "string"}, "n": {"type": "integer"}, "unit": {"enum": ["k", "<"]}}));
    let case = Case::new(&Arguments::Tagged(keyed), "</function>", &schema);
    let text = "<param name=\"markup\"><![CDATA[<a href=\"/x\">hi</a> </param>]] ]]></param></function>";
    assert_eq!(case.json(text, true), json!({"markup": "<a href=\"/x\">hi</a> </param>]] "}));
    // A section is for text that nothing else holds.
    assert_eq!(case.json("<param name=\"n\"><![CDATA[1]]></param></function>", false), json!({"n": 1}));
    assert_eq!(case.json("<param name=\"unit\"><![CDATA[k]]></param></function>", false), json!({"unit": "k"}));
    assert_eq!(case.json("<param name=\"markup\"><![CD</param></function>", true), json!({"markup": "<![CD"}));
    assert_eq!(case.json("<param name=\"markup\"><</param></function>", true), json!({"markup": "<"}));
}

#[test]
fn keyword_arguments() {
    let case = Case::new(&keywords(), ")", &json!({"type": "object"}));
    assert_eq!(case.json(")", true), json!({}));
    assert_eq!(case.json("arg1=1)", true), json!({"arg1": 1}));
    assert_eq!(
        case.json("enabled=True, value=None, x=false, n=null)", true),
        json!({"enabled": true, "value": null, "x": false, "n": null})
    );
    assert_eq!(
        case.json("query='a < b && c\nd', lang=\"en\\\"-'GB\", tags=['x', \"y\"], m={'a': {\"b\": -2.5}}, e=[])", true),
        json!({"query": "a < b && c\nd", "lang": "en\"-'GB", "tags": ["x", "y"], "m": {"a": {"b": -2.5}}, "e": []}),
    );
    assert_eq!(case.json("code='it\\'s \\x41\\d', l=[1,],)", false), json!({"code": "it's A\\d", "l": [1]}));
    assert_eq!(case.json("a='\\u00e9\\n')", true), json!({"a": "é\n"}));
    assert_eq!(case.lenient("a=1 b=2)"), Was::Dead(4));
}

#[test]
fn pairs_with_quotes_of_their_own() {
    let schema = properties(json!({
        "city": {"type": "string"}, "todos": {"type": "array", "items": {"type": "string"}},
        "config": {"type": "object"}, "n": {"type": "number"}, "b": {"type": "boolean"}, "v": {"type": "null"},
    }));
    let case = Case::new(&gemma(), "}", &schema);
    assert_eq!(case.json("}", true), json!({}));
    assert_eq!(
        case.json("city:<|\"|>San \"F\\n <|\"| <|\"|>,n:-3.5,b:false,v:null}", true),
        json!({"city": "San \"F\\n <|\"| ", "n": -3.5, "b": false, "v": null})
    );
    assert_eq!(case.json("todos:[<|\"|>a, b<|\"|>,<|\"|>c<|\"|>]}", true), json!({"todos": ["a, b", "c"]}));
    assert_eq!(
        case.json("config:{theme:<|\"|>dark<|\"|>,count:3,deep:{}},todos:[]}", true),
        json!({"config": {"theme": "dark", "count": 3, "deep": {}}, "todos": []})
    );
    assert_eq!(case.json("city:3}", false), json!({"city": 3}));
    // A mark ends a string where something follows that may stand there.
    for text in ["<|\"|>", "a<|\"|>b", "<|\"|><|\"|>", "a<|\"|> <|\"|>\n<", "<|\"|>]", "<|\"|>:<|\"|", "x <|\"|>"] {
        assert_eq!(case.json(&format!("city:<|\"|>{text}<|\"|>,n:1}}"), true), json!({"city": text, "n": 1}), "{text}");
        assert_eq!(case.json(&format!("city:<|\"|>{text}<|\"|> }}"), true), json!({"city": text}), "{text}");
    }
    assert_eq!(
        case.json(
            "todos:[<|\"|>a<|\"|>}<|\"|>,<|\"|><|\"|>]],config:{a:<|\"|>b<|\"|>]<|\"|>}}".replace("]],", "],").as_str(),
            true
        ),
        json!({"todos": ["a<|\"|>}", ""], "config": {"a": "b<|\"|>]"}})
    );
    assert_eq!(case.lenient("city:<|\"|>a<|\"|>"), Was::Open("{\"city\":\"a".to_owned()));
    // A value of a length holds it as far as that goes.
    let case = Case::new(&gemma(), "}", &properties(json!({"s": {"type": "string", "minLength": 6, "maxLength": 6}})));
    assert_eq!(case.json("s:<|\"|>a<|\"|><|\"|>}", true), json!({"s": "a<|\"|>"}));
    assert!(matches!(case.strict(b"s:<|\"|>a<|\"|>}"), Was::Dead(_)));
    assert!(matches!(case.strict(b"s:<|\"|>ab<|\"|>"), Was::Dead(_)));
}

#[test]
fn what_is_certain_is_out_at_once() {
    let case = Case::new(&qwen(), "</function>", &properties(json!({"code": {"type": "string"}})));
    for (text, so_far) in [
        ("<parameter=co", "{\"co"),
        ("<parameter=code>", "{\"code\":\""),
        ("<parameter=code>\nab\n", "{\"code\":\"ab"),
        ("<parameter=code>\nab\n</par", "{\"code\":\"ab"),
        ("<parameter=code>\nab\n</parx", "{\"code\":\"ab\\n</parx"),
        // What follows says whether the value is over.
        ("<parameter=code>\nab\n</parameter>", "{\"code\":\"ab"),
        ("<parameter=code>\nab\n</parameter>\n</function", "{\"code\":\"ab"),
    ] {
        assert_eq!(case.lenient(text), Was::Open(so_far.to_owned()));
        assert_eq!(case.strict(text.as_bytes()), Was::Open(so_far.to_owned()));
    }
}

#[test]
fn control_tokens_are_marks_and_nothing_else() {
    let case = Case::new(&qwen(), "</function>", &properties(json!({"code": {"type": "string"}})));
    let text = b"\xff<parameter=code>\nab\n\xff</parameter>\n\xff</function>";
    assert_eq!(case.strict(text), Was::Over(text.len(), "{\"code\":\"ab\"}".to_owned()));
    for (text, at) in [
        (&b"<parameter=code>\na\n\xff\xff"[..], 20),
        (b"<parameter=code>\na\n\xff<x", 21),
        (b"<parameter=code>\na\n\xff</parax", 26),
        (b"<parameter=c\xffode", 12),
        (b"\xff ", 1),
        (b"\xff</parameter", 3),
    ] {
        assert_eq!(case.strict(text), Was::Dead(at), "{}", text.escape_ascii());
    }
    // What was text goes on as text, and the mark begins anew.
    let case = Case::new(
        &tagged("<parameter=", ">", "</parameter>"),
        "</function>",
        &properties(json!({"code": {"type": "string"}})),
    );
    let text = b"<parameter=code>a</\xff</parameter></function>";
    assert_eq!(case.strict(text), Was::Over(text.len(), "{\"code\":\"a</\"}".to_owned()));
    let text = b"<parameter=code>a</parameter> \xff</parameter>\xff</function>";
    assert_eq!(case.strict(text), Was::Over(text.len(), "{\"code\":\"a</parameter> \"}".to_owned()));
    let elements = Arguments::Elements { mark: "]m[".into(), quoted: false };
    let case = Case::new(&elements, "]m[</invoke>", &properties(json!({"code": {"type": "string"}})));
    let text = b"\xff]m[<code>a]m[</code>\xff]m[</code>\xff]m[</invoke>";
    assert_eq!(case.strict(text), Was::Over(text.len(), "{\"code\":\"a]m[</code>\"}".to_owned()));

    let case = Case::new(&gemma(), "}", &properties(json!({"city": {"type": "string"}, "l": {}})));
    let text = b"city:\xff<|\"|>Paris <\xff<|\"|>,l:[\xff<|\"|>x<|\xff\"|>]}";
    assert_eq!(case.strict(text), Was::Over(text.len(), "{\"city\":\"Paris <\",\"l\":[\"x\"]}".to_owned()));
    let text = b"city:\xff<|\"|>a<|\"|> \xff<|\"|>}";
    assert_eq!(case.strict(text), Was::Over(text.len(), "{\"city\":\"a<|\\\"|> \"}".to_owned()));
    assert_eq!(case.strict(b"city:\xff<|\"|>a\xff<|\"|>b"), Was::Dead(18));
    assert_eq!(case.strict(b"city:\xff<|x"), Was::Dead(8));
    assert_eq!(case.strict(b"city:<|\"|>a\xff<|x"), Was::Dead(14));
    assert_eq!(case.strict(b"cit\xff"), Was::Dead(3));
    let case = Case::new(&Arguments::Json, "", &json!({"type": "object"}));
    assert_eq!(case.strict(b"{\"\xff"), Was::Dead(2));
}

#[test]
fn elements_inside_each_other() {
    let mark = "]<]minimax[>[";
    let schema = properties(json!({
        "city": {"type": "string"}, "ref": {"type": "integer"},
        "number": {"type": "object", "properties": {"real": {"type": "number"}, "imaginary": {"type": "number"}}},
        "filter": {"anyOf": [{"type": "array", "items": {"type": "string"}},
            {"type": "object", "properties": {"field": {"type": "string"}}, "required": ["field"]}]},
        "label": {"oneOf": [{"type": "string"}, {"type": "object", "properties": {"text": {"type": "string"}}}]},
        "limit": {"oneOf": [{"type": "integer"}, {"type": "object", "properties": {"max": {"type": "integer"}}}]},
        "rows": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}, "any": {},
    }));
    let arguments = Arguments::Elements { mark: mark.into(), quoted: false };
    let case = Case::new(&arguments, &format!("{mark}</invoke>"), &schema);
    let check = |text: &str, expected: Value, strict: bool| {
        let text = format!("{text}@</invoke>").replace('@', mark);
        assert_eq!(case.json(&text, strict), expected, "{text}");
    };
    check("", json!({}), true);
    check("@<city>Paris <b> \n@</city>", json!({"city": "Paris <b> \n"}), true);
    check("@<ref>42@</ref>\n@<city>x@</city>\n", json!({"ref": 42, "city": "x"}), true);
    check(
        "@<number>@<real>1.5@</real>@<imaginary>-2.5@</imaginary>@</number>",
        json!({"number": {"real": 1.5, "imaginary": -2.5}}),
        true,
    );
    check("@<number>\n  @<real>1.5@</real>\n@</number>", json!({"number": {"real": 1.5}}), true);
    check("@<number>{\"real\": 2}@</number>", json!({"number": {"real": 2}}), true);
    check("@<number>@</number>", json!({"number": {}}), true);
    check("@<filter>@<item>alpha@</item>@<item>beta@</item>@</filter>", json!({"filter": ["alpha", "beta"]}), true);
    check("@<filter>@<field>a@</field>@</filter>", json!({"filter": {"field": "a"}}), true);
    check("@<filter>@<other>a@</other>@</filter>", json!({"filter": {"other": "a"}}), false);
    check("@<label>text@</label>@<limit>10@</limit>", json!({"label": "text", "limit": 10}), true);
    check(
        "@<label>@<text>t@</text>@</label>@<limit>@<max>10@</max>@</limit>",
        json!({"label": {"text": "t"}, "limit": {"max": 10}}),
        true,
    );
    check(
        "@<rows>@<item>@<item>1@</item>@<item>2@</item>@</item>@<item>@</item>@</rows>",
        json!({"rows": [[1, 2], []]}),
        true,
    );
    check("@<any>@<a>1@</a>@<b>@<item>x@</item>@</b>@</any>", json!({"any": {"a": 1, "b": ["x"]}}), true);
    check("@<any>@</any>", json!({"any": ""}), true);
    // What closes an element does where something follows that may stand there.
    for text in ["@</city>", "a@</city>b", "@</city>@</city>", "@</city> @</x>", "@</city>@", "@</city>\n@</number>."] {
        check(
            &format!("@<city>{text}@</city>\n@<ref>1@</ref>"),
            json!({"city": text.replace('@', mark), "ref": 1}),
            true,
        );
        check(
            &format!("@<label>@<text>{text}@</text>@</label>"),
            json!({"label": {"text": text.replace('@', mark)}}),
            true,
        );
    }
    check("@<label>@<text>@</text>@</text>@</label>", json!({"label": {"text": format!("{mark}</text>")}}), true);
    check("@<filter>@<item>@</item>.@</item>@</filter>", json!({"filter": [format!("{mark}</item>.")]}), true);
}

#[test]
fn elements_with_json_inside() {
    let schema = properties(json!({
        "city": {"type": "string"}, "days": {"type": "integer"},
        "more": {"type": "object", "properties": {"deep": {"type": "boolean"}}},
    }));
    let case = Case::new(&Arguments::Elements { mark: String::new(), quoted: true }, "</invoke>", &schema);
    let check = |text: &str, expected: Value| {
        assert_eq!(case.json(text, true), expected, "{text}");
    };
    check("</invoke>", json!({}));
    check("<city>\"</city> \\\"x\\\"\"</city>\n  <days>3</days></invoke>", json!({"city": "</city> \"x\"", "days": 3}));
    check("<more>{\"deep\": true}\n</more></invoke>", json!({"more": {"deep": true}}));
}
