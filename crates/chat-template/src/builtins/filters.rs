//! Jinja2's filters, by name.

use super::args::Args;
use super::filters_of_lists as lists;
use super::filters_of_text as texts;
use crate::error::{Fault, Kind, Res};
use crate::eval::Eval;
use crate::value::Value;

pub(crate) type FilterFn = fn(&mut Eval<'_>, Value, Args) -> Res<Value>;

pub(crate) fn find(name: &str) -> Option<FilterFn> {
    Some(match name {
        "abs" => texts::abs,
        "attr" => lists::attr,
        "batch" => lists::batch,
        "capitalize" => |_, value, args| texts::case(&value, args, "capitalize"),
        "center" => texts::center,
        "count" | "length" => lists::length,
        "d" | "default" => lists::default,
        "dictsort" => lists::dictsort,
        "e" | "escape" => |_, value, args| texts::escape(&value, args, false),
        "first" => lists::first,
        "float" => texts::float,
        "forceescape" => |_, value, args| texts::escape(&value, args, true),
        "format" => texts::format,
        "groupby" => lists::groupby,
        "indent" => texts::indent,
        "int" => texts::int_of,
        "items" => lists::items,
        "join" => lists::join,
        "last" => lists::last,
        "list" => lists::list,
        "lower" => |_, value, args| texts::case(&value, args, "lower"),
        "map" => lists::map,
        "max" => |_, value, args| lists::extreme(&value, args, true),
        "min" => |_, value, args| lists::extreme(&value, args, false),
        "reject" => |eval, value, args| lists::select(eval, &value, args, false, false),
        "rejectattr" => |eval, value, args| lists::select(eval, &value, args, false, true),
        "replace" => texts::replace,
        "reverse" => lists::reverse,
        "round" => texts::round,
        "safe" => texts::safe,
        "select" => |eval, value, args| lists::select(eval, &value, args, true, false),
        "selectattr" => |eval, value, args| lists::select(eval, &value, args, true, true),
        "slice" => lists::slice,
        "sort" => lists::sort,
        "string" => texts::string,
        "striptags" => texts::striptags,
        "sum" => lists::sum,
        "title" => texts::title,
        "tojson" => texts::tojson,
        "trim" => texts::trim,
        "truncate" => texts::truncate,
        "unique" => lists::unique,
        "upper" => |_, value, args| texts::case(&value, args, "upper"),
        "urlencode" => texts::urlencode,
        "wordcount" => texts::wordcount,
        "filesizeformat" | "pprint" | "random" | "urlize" | "wordwrap" | "xmlattr" => {
            |_, _, _| Err(Fault::new(Kind::Unsupported, "this filter of Jinja2 has no use in a prompt"))
        }
        _ => return None,
    })
}
