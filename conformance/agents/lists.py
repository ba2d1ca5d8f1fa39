"""The tool lists of the suite, as agents send them: written anew after public documentation, none is a copy.

`python lists.py OUT` writes each as a JSON file in the form of chat APIs.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

Schema = dict[str, Any]
#: Seed of the aggregates.
SEED = 56


def tool(name: str, description: str, parameters: Schema | None = None) -> Schema:
    """Returns a definition in the form of chat APIs; without parameters it has none at all."""
    function: Schema = {"name": name, "description": description}
    if parameters is not None:
        function["parameters"] = parameters
    return {"type": "function", "function": function}


def args(required: str = "", *, closed: bool = False, **properties: Schema) -> Schema:
    """Returns an object with these properties; `required` names some, with blanks between."""
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required.split()
    return schema | ({"additionalProperties": False} if closed else {})


def text(description: str = "", **keywords: Any) -> Schema:
    """Returns the schema of a string."""
    return {"type": "string", **({"description": description} if description else {}), **keywords}


def number(description: str = "", kind: str = "integer", **keywords: Any) -> Schema:
    """Returns the schema of a number."""
    return {"type": kind, **({"description": description} if description else {}), **keywords}


def flag(description: str = "", **keywords: Any) -> Schema:
    """Returns the schema of a boolean."""
    return {"type": "boolean", **({"description": description} if description else {}), **keywords}


def array(items: Schema, description: str = "", **keywords: Any) -> Schema:
    """Returns the schema of an array."""
    return {"type": "array", "items": items, **({"description": description} if description else {}), **keywords}


def one_of(*values: Any, **keywords: Any) -> Schema:
    """Returns the schema of one of these strings."""
    return {"type": "string", "enum": list(values), **keywords}


LONG = (
    "Runs in the working directory of the session, which stays the same from call to call. Quote paths that contain "
    "spaces. Do not use it to read, to search or to edit files: there are tools for that, and their output is "
    "easier to review. Commands that do not end by themselves need run_in_background. Output of more than 30,000 "
    "characters is cut off. Before you create a folder or a file, make sure that its parent exists. Never change "
    "the configuration of version control, never skip hooks, and commit only if the user asked for it. "
)


def pocket() -> list[Schema]:
    """Five small tools, 2 kB: what a phone's assistant has."""
    return [
        tool("get_weather", "Current weather of a place.", args("city", city=text(), unit=one_of("c", "f"))),
        tool("set_timer", "Starts a timer.", args("seconds", seconds=number(minimum=1, maximum=86_400), label=text())),
        tool("stop_timer", "Stops the timer that rings."),
        tool("battery", "Charge of the battery in percent.", {"type": "object", "properties": {}}),
        tool("say", "Says a text aloud.", args("text", closed=True, text=text(minLength=1, maxLength=500))),
    ]


def coding_agent() -> list[Schema]:
    """The tools of a coding agent in a terminal."""
    path = text("The absolute path of the file")
    todo = args(
        "content status activeForm",
        closed=True,
        content=text(minLength=1),
        status=one_of("pending", "in_progress", "completed"),
        activeForm=text("The same as a participle, shown while it is done", minLength=1),
    )
    edit = args(
        "old_string new_string", closed=True, old_string=text(), new_string=text(), replace_all=flag(default=False)
    )
    question = args(
        "question header options multiSelect",
        closed=True,
        question=text("The whole question, with its question mark"),
        header=text("A very short label", maxLength=12),
        options=array(args("label description", closed=True, label=text(), description=text()), minItems=2, maxItems=4),
        multiSelect=flag(default=False),
    )
    schema_head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return [
        tool(
            "Bash",
            "Runs a command in a persistent shell session. " + LONG * 3,
            schema_head
            | args(
                "command",
                closed=True,
                command=text("The command to run", maxLength=65_536),
                timeout=number("Milliseconds, at most 600000", "number", maximum=600_000),
                description=text("What the command does, in five to ten words"),
                run_in_background=flag(),
                dangerouslyDisableSandbox=flag("Leave the sandbox for this command"),
            ),
        ),
        tool(
            "Read",
            "Reads a file of the local file system, with line numbers. " + LONG,
            args(
                "file_path",
                closed=True,
                file_path=path,
                offset=number("The line to begin with", "number"),
                limit=number("The number of lines", "number"),
                pages=text("A range of pages of a PDF, such as 1-5", pattern=r"^\d+(-\d+)?$"),
            ),
        ),
        tool(
            "Write",
            "Writes a file, and replaces the one that is there. " + LONG,
            args("file_path content", closed=True, file_path=path, content=text(maxLength=1_048_576)),
        ),
        tool(
            "Edit",
            "Replaces a text in a file exactly. " + LONG,
            args(
                "file_path old_string new_string",
                closed=True,
                file_path=path,
                old_string=text("The text to replace", maxLength=65_536),
                new_string=text("The text in its place; must differ", maxLength=65_536),
                replace_all=flag("All places, and not only the only one", default=False),
            ),
        ),
        tool(
            "MultiEdit",
            "Several edits of one file, one after the other, all or none.",
            args("file_path edits", closed=True, file_path=path, edits=array(edit, minItems=1, maxItems=10_000)),
        ),
        tool(
            "Grep",
            "Searches the contents of files with a regular expression, as ripgrep does.",
            args(
                "pattern",
                closed=True,
                pattern=text("The regular expression"),
                path=text(),
                glob=text('Files to search, such as "*.{ts,tsx}"'),
                type=text(pattern=r"[a-z0-9+]+"),
                output_mode=one_of("content", "files_with_matches", "count"),
                multiline=flag(),
                head_limit=number("", "number"),
                **{
                    "-A": number("", "number"),
                    "-B": number("", "number"),
                    "-C": number("", "number"),
                    "-i": flag("Ignore case"),
                    "-n": flag("Show line numbers"),
                },
            ),
        ),
        tool(
            "Glob",
            "Finds files by the pattern of their names.",
            args("pattern", closed=True, pattern=text(), path=text()),
        ),
        tool(
            "LS",
            "Lists a folder.",
            args("path", closed=True, path=text(pattern=r"^(/|[A-Za-z]:\\)"), ignore=array(text())),
        ),
        tool(
            "Task",
            "Starts an agent for a task of several steps. " + LONG,
            args(
                "description prompt subagent_type",
                closed=True,
                description=text("The task in three to five words"),
                prompt=text("The task", maxLength=65_536),
                subagent_type=text("The kind of agent", pattern=r"\w"),
                model=one_of("small", "medium", "large"),
                resume=text(),
            ),
        ),
        tool(
            "TodoWrite",
            "Keeps the list of what is to be done. " + LONG * 2,
            args("todos", closed=True, todos=array(todo, maxItems=10_000)),
        ),
        tool(
            "WebFetch",
            "Fetches a page and answers a question about it.",
            args("url prompt", closed=True, url=text(format="uri"), prompt=text()),
        ),
        tool(
            "WebSearch",
            "Searches the web.",
            args(
                "query",
                closed=True,
                query=text(minLength=2),
                allowed_domains=array(text()),
                blocked_domains=array(text()),
            ),
        ),
        tool(
            "NotebookEdit",
            "Replaces, inserts or deletes a cell of a notebook.",
            args(
                "notebook_path new_source",
                closed=True,
                notebook_path=path,
                cell_id=text(),
                new_source=text(maxLength=65_536),
                cell_type=one_of("code", "markdown"),
                edit_mode=one_of("replace", "insert", "delete"),
            ),
        ),
        tool(
            "AskUserQuestion",
            "Asks the user.",
            args(
                "questions",
                closed=True,
                questions=array(question, minItems=1, maxItems=4),
                answers={"type": "object", "additionalProperties": {"type": "string"}},
            ),
        ),
        tool(
            "BashOutput",
            "Output of a shell in the background.",
            args("bash_id", closed=True, bash_id=text(), filter=text()),
        ),
        tool("KillShell", "Ends a shell in the background.", args("shell_id", closed=True, shell_id=text())),
        tool("EnterPlanMode", "Begins to plan.", args(closed=True)),
        tool(
            "ExitPlanMode",
            "Asks for approval of the plan.",
            {"type": "object", "properties": {}, "additionalProperties": {}},
        ),
        tool("ListMcpResources", "Lists resources.", {"type": "object"}),
    ]


def browser() -> list[Schema]:
    """A browser that an agent controls."""
    ref, element = text("The exact reference of the element in the snapshot"), text("The element in words, for people")
    button, keys = one_of("left", "right", "middle"), array(one_of("Alt", "Control", "ControlOrMeta", "Meta", "Shift"))
    field = args(
        "name type ref value",
        closed=True,
        name=text(),
        type=one_of("textbox", "checkbox", "radio", "combobox", "slider"),
        ref=ref,
        value=text(),
    )
    return [
        tool("browser_navigate", "Goes to an address.", args("url", closed=True, url=text(format="uri"))),
        tool("browser_navigate_back", "Goes back.", args(closed=True)),
        tool("browser_snapshot", "The page as an accessibility tree.", args(closed=True)),
        tool(
            "browser_click",
            "Clicks.",
            args(
                "element ref",
                closed=True,
                element=element,
                ref=ref,
                doubleClick=flag(),
                button=button,
                modifiers=keys,
            ),
        ),
        tool(
            "browser_type",
            "Types text.",
            args(
                "element ref text",
                closed=True,
                element=element,
                ref=ref,
                text=text(maxLength=65_536),
                submit=flag(),
                slowly=flag(),
            ),
        ),
        tool(
            "browser_press_key",
            "Presses a key.",
            args(
                "key",
                closed=True,
                key=text(pattern=r"^(?:[A-Za-z0-9]|Arrow(?:Left|Right|Up|Down)|Enter|Escape|Tab|F(?:[1-9]|1[0-2]))$"),
            ),
        ),
        tool("browser_hover", "Moves the pointer.", args("element ref", closed=True, element=element, ref=ref)),
        tool(
            "browser_drag",
            "Drags.",
            args(
                "startElement startRef endElement endRef",
                closed=True,
                startElement=element,
                startRef=ref,
                endElement=element,
                endRef=ref,
            ),
        ),
        tool(
            "browser_select_option",
            "Chooses.",
            args("element ref values", closed=True, element=element, ref=ref, values=array(text(), minItems=1)),
        ),
        tool(
            "browser_fill_form",
            "Fills a form.",
            args("fields", closed=True, fields=array(field, minItems=1, maxItems=10_000)),
        ),
        tool(
            "browser_evaluate",
            "Evaluates JavaScript.",
            args("function", closed=True, function=text("() => {} or (element) => {}"), element=element, ref=ref),
        ),
        tool("browser_file_upload", "Uploads files.", args(closed=True, paths=array(text()))),
        tool(
            "browser_handle_dialog", "Answers a dialog.", args("accept", closed=True, accept=flag(), promptText=text())
        ),
        tool(
            "browser_resize",
            "Resizes the window.",
            args(
                "width height",
                closed=True,
                width=number("", "number", exclusiveMinimum=0),
                height=number("", "number", exclusiveMinimum=0),
            ),
        ),
        tool(
            "browser_tabs",
            "Tabs.",
            args("action", closed=True, action=one_of("list", "new", "close", "select"), index=number("", "number")),
        ),
        tool(
            "browser_take_screenshot",
            "A picture.",
            args(
                closed=True,
                type=one_of("png", "jpeg", default="png"),
                filename=text(pattern=r"\.(png|jpe?g)$"),
                element=element,
                ref=ref,
                fullPage=flag(),
            ),
        ),
        tool("browser_network_requests", "All requests.", args(closed=True, includeStatic=flag(default=False))),
        tool(
            "browser_console_messages",
            "The console.",
            args(closed=True, level=one_of("error", "warning", "info", "debug")),
        ),
        tool("browser_wait_for", "Waits.", args(closed=True, time=number("", "number"), text=text(), textGone=text())),
        tool(
            "browser_mouse_move_xy",
            "Moves to a place.",
            args("x y", closed=True, x=number("", "number"), y=number("", "number")),
        ),
        tool("browser_close", "Closes the page.", args(closed=True)),
    ]


def code_host() -> list[Schema]:
    """A connector to a host of repositories: issues, pull requests, files, workflows."""
    at = {"owner": text("The owner of the repository"), "repo": text("Its name")}
    page = {"page": number(minimum=1), "perPage": number(minimum=1, maximum=100)}
    sha = text("A commit", pattern="^[0-9a-f]{40}$")
    comment = args(
        "path body", path=text(), body=text(), position=number(), line=number(), side=one_of("LEFT", "RIGHT")
    )
    file = args("path content", path=text(), content=text())
    return [
        tool("get_issue", "An issue.", args("owner repo issue_number", **at, issue_number=number())),
        tool(
            "create_issue",
            "Opens an issue.",
            args(
                "owner repo title",
                **at,
                title=text(maxLength=256),
                body=text(maxLength=65_536),
                assignees=array(text()),
                labels=array(text()),
                milestone=number(),
            ),
        ),
        tool(
            "update_issue",
            "Changes an issue.",
            args(
                "owner repo issue_number",
                **at,
                issue_number=number(),
                title=text(),
                body=text(),
                state=one_of("open", "closed"),
                labels=array(text()),
                state_reason={"anyOf": [one_of("completed", "not_planned", "duplicate"), {"type": "null"}]},
            ),
        ),
        tool(
            "list_issues",
            "Lists issues.",
            args(
                "owner repo",
                **at,
                **page,
                state=one_of("OPEN", "CLOSED"),
                labels=array(text()),
                direction=one_of("ASC", "DESC"),
                since=text("A time in ISO 8601", format="date-time"),
                after=text(),
            ),
        ),
        tool(
            "search_code",
            "Searches code.",
            args("query", query=text(), sort=text(), order=one_of("asc", "desc"), **page),
        ),
        tool(
            "get_file_contents",
            "A file or a folder.",
            args("owner repo", **at, path=text(default="/"), ref=text(), sha=sha),
        ),
        tool(
            "create_or_update_file",
            "Writes a file.",
            args(
                "owner repo path content message branch",
                **at,
                path=text(),
                content=text(maxLength=65_536),
                message=text(),
                branch=text(),
                sha=sha,
            ),
        ),
        tool(
            "push_files",
            "Writes several files at once.",
            args(
                "owner repo branch files message",
                **at,
                branch=text(),
                files=array(file, minItems=1),
                message=text(),
            ),
        ),
        tool("create_branch", "Makes a branch.", args("owner repo branch", **at, branch=text(), from_branch=text())),
        tool(
            "create_pull_request",
            "Opens a pull request.",
            args(
                "owner repo title head base",
                **at,
                title=text(),
                body=text(),
                head=text(),
                base=text(),
                draft=flag(),
                maintainer_can_modify=flag(),
            ),
        ),
        tool(
            "review_pull_request",
            "Reviews a pull request.",
            args(
                "owner repo pullNumber event",
                **at,
                pullNumber=number(),
                event=one_of("APPROVE", "REQUEST_CHANGES", "COMMENT"),
                body=text(),
                commitID=sha,
                comments=array(comment),
            ),
        ),
        tool(
            "merge_pull_request",
            "Merges.",
            args(
                "owner repo pullNumber",
                **at,
                pullNumber=number(),
                merge_method=one_of("merge", "squash", "rebase"),
                commit_title=text(),
                commit_message=text(),
            ),
        ),
        tool("list_commits", "Lists commits.", args("owner repo", **at, **page, sha=text(), author=text())),
        tool(
            "run_workflow",
            "Starts a workflow.",
            args(
                "owner repo workflow_id ref",
                **at,
                workflow_id=text(),
                ref=text(),
                inputs={"type": "object", "properties": {}, "additionalProperties": True},
            ),
        ),
        tool(
            "get_job_logs",
            "Logs of a job.",
            args(
                "owner repo", **at, job_id=number(), run_id=number(), failed_only=flag(), tail_lines=number(default=500)
            ),
        ),
        tool(
            "list_notifications",
            "Notifications.",
            args(
                filter=one_of("default", "include_read_notifications", "only_participating"),
                since=text(format="date-time"),
                before=text(format="date-time"),
                **page,
            ),
        ),
        tool("get_me", "Who is signed in.", {"type": "object", "properties": {}}),
        tool("star_repository", "Stars.", args("owner repo", **at)),
    ]


def workplace() -> list[Schema]:
    """Connectors to a messenger and to an issue tracker, with documents inside documents."""
    node: Schema = {
        "type": "object",
        "properties": {
            "type": one_of("doc", "paragraph", "text", "bulletList", "listItem", "codeBlock", "heading"),
            "text": text(),
            "attrs": {"type": "object"},
            "content": array({"$ref": "#/$defs/node"}),
        },
        "required": ["type"],
    }
    key = text("The key of an issue", pattern="[A-Z][A-Z0-9]+-[0-9]+")
    block = {
        "anyOf": [
            args(
                "type text",
                type={"const": "section"},
                text=args("type text", type=one_of("mrkdwn", "plain_text"), text=text(maxLength=3000)),
            ),
            args("type", type={"const": "divider"}),
            args(
                "type image_url alt_text",
                type={"const": "image"},
                image_url=text(format="uri"),
                alt_text=text(maxLength=2000),
            ),
            args(
                "type elements",
                type={"const": "actions"},
                elements=array(
                    args("type action_id", type=one_of("button", "static_select"), action_id=text()), maxItems=25
                ),
            ),
        ]
    }
    value = {"anyOf": [text(), number("", "number"), flag(), {"type": "null"}, array(text()), args("id", id=text())]}
    return [
        tool(
            "slack_post_message",
            "Posts to a channel. 投稿する。",
            args(
                "channel",
                channel=text(pattern="^[CDG][A-Z0-9]{8,}$"),
                text=text(maxLength=40_000),
                blocks=array(block, maxItems=50),
                thread_ts=text(pattern=r"^\d{10}\.\d{6}$"),
            ),
        ),
        tool(
            "slack_list_channels",
            "Lists channels.",
            args(limit=number(minimum=1, maximum=200, default=100), cursor=text()),
        ),
        tool(
            "slack_add_reaction",
            "Adds a reaction 👍.",
            args(
                "channel timestamp reaction", channel=text(), timestamp=text(), reaction=text(pattern="^[a-z0-9_+-]+$")
            ),
        ),
        tool(
            "slack_search",
            "Searches messages.",
            args("query", query=text(), sort=one_of("score", "timestamp"), count=number(minimum=1, maximum=100)),
        ),
        tool("slack_users_profile", "A profile."),
        tool(
            "jira_get_issue", "An issue.", args("issueIdOrKey", issueIdOrKey=key, fields=array(text()), expand=text())
        ),
        tool(
            "jira_create_issue",
            "Makes an issue; its description is a document.",
            args(
                "projectKey issueTypeName summary",
                projectKey=text(minLength=2, maxLength=10),
                issueTypeName=text(),
                summary=text(minLength=1, maxLength=255),
                description={"$ref": "#/$defs/node"},
                fields={"type": "object", "additionalProperties": value},
                dueDate=text(format="date"),
            )
            | {"$defs": {"node": node}},
        ),
        tool(
            "jira_search",
            "Searches by JQL.",
            args(
                "jql", jql=text(), maxResults=number(minimum=1, maximum=100), fields=array(text()), nextPageToken=text()
            ),
        ),
        tool(
            "jira_transition",
            "Moves an issue.",
            args(
                "issueIdOrKey transition", issueIdOrKey=key, transition=args("id", id=text()), update={"type": "object"}
            ),
        ),
        tool(
            "jira_worklog",
            "Logs work.",
            args(
                "issueIdOrKey timeSpent",
                issueIdOrKey=key,
                timeSpent=text("Such as 2h 30m", pattern=r"\d+[wdhm]"),
                started=text(format="date-time"),
            ),
        ),
        tool("jira_lookup_account", "Finds people — by name or e-mail.", args("searchString", searchString=text())),
    ]


def data_store() -> list[Schema]:
    """Connectors to a file system, to SQL and to a memory of facts."""
    path = text("A path below the folders that are allowed")
    entity = args("name entityType observations", name=text(), entityType=text(), observations=array(text()))
    relation = args("from to relationType", to=text(), relationType=text(), **{"from": text()})
    scalar = {"anyOf": [text(), number("", "number"), flag(), {"type": "null"}]}
    condition: Schema = {
        "anyOf": [
            args(
                "column operator value",
                closed=True,
                column=text(pattern="^[A-Za-z_][A-Za-z0-9_]*$"),
                operator=one_of("=", "<>", "<", "<=", ">", ">=", "LIKE"),
                value=scalar,
            ),
            args("all", closed=True, all=array({"$ref": "#/$defs/condition"}, minItems=1)),
            args("any", closed=True, any=array({"$ref": "#/$defs/condition"}, minItems=1)),
            args("not", closed=True, **{"not": {"$ref": "#/$defs/condition"}}),
        ]
    }
    edit = args("oldText newText", closed=True, oldText=text(), newText=text())
    return [
        tool(
            "read_text_file",
            "Reads a file.",
            args("path", path=path, tail=number("", "number"), head=number("", "number")),
        ),
        tool("read_multiple_files", "Reads files.", args("paths", paths=array(text(), minItems=1, maxItems=10_000))),
        tool("write_file", "Writes a file.", args("path content", path=path, content=text(maxLength=1_000_000))),
        tool(
            "edit_file", "Edits a file.", args("path edits", path=path, edits=array(edit), dryRun=flag(default=False))
        ),
        tool("directory_tree", "A tree.", args("path", path=path, excludePatterns=array(text(), default=[]))),
        tool("move_file", "Moves a file.", args("source destination", source=path, destination=path)),
        tool(
            "search_files",
            "Finds files.",
            args("path pattern", path=path, pattern=text(), excludePatterns=array(text())),
        ),
        tool(
            "list_allowed_directories",
            "The folders that are allowed.",
            {"type": "object", "properties": {}, "required": []},
        ),
        tool(
            "sql_query",
            "Runs a statement that only reads.",
            args(
                "sql",
                sql=text(maxLength=65_536, pattern=r"^\s*([Ss][Ee][Ll][Ee][Cc][Tt]|[Ww][Ii][Tt][Hh])\b"),
                parameters=array(scalar),
                timeout_ms=number(minimum=0),
            ),
        ),
        tool(
            "sql_select",
            "Selects rows without SQL.",
            args(
                "table",
                table=text(),
                columns=array(text(), uniqueItems=True),
                where={"$ref": "#/$defs/condition"},
                limit=number(minimum=1, maximum=10_000),
                order_by=array(args("column", column=text(), descending=flag(default=False))),
            )
            | {"$defs": {"condition": condition}},
        ),
        tool("sql_schema", "The schema."),
        tool(
            "sql_insert",
            "Inserts rows.",
            args(
                "table rows",
                table=text(),
                rows=array({"type": "object", "additionalProperties": scalar}, minItems=1, maxItems=10_000),
            ),
        ),
        tool("create_entities", "Remembers things.", args("entities", entities=array(entity))),
        tool("create_relations", "Remembers relations.", args("relations", relations=array(relation))),
        tool("read_graph", "All that is remembered.", {"type": "object", "properties": {}}),
        tool("search_nodes", "Searches the memory.", args("query", query=text())),
    ]


def office() -> list[Schema]:
    """Mail, calendar, documents and sheets, with large cells and many rows."""
    mail = text(format="email")
    moment = args("dateTime", dateTime=text(format="date-time"), timeZone=text(default="UTC"))
    day = args("date", date=text(format="date"))
    cell = {"anyOf": [text(maxLength=50_000), number("", "number"), flag(), {"type": "null"}]}
    color = args(
        red=number("", "number", minimum=0, maximum=1),
        green=number("", "number", minimum=0, maximum=1),
        blue=number("", "number", minimum=0, maximum=1),
    )
    reminder = args("method minutes", method=one_of("email", "popup"), minutes=number(minimum=0, maximum=40_320))
    part: Schema = args(
        "kind", kind=one_of("text", "group"), text=text(), parts=array({"$ref": "#/$defs/part"}, maxItems=1000)
    )
    return [
        tool(
            "mail_send",
            "Sends a mail.",
            args(
                "to subject body",
                to=array(mail, minItems=1, maxItems=500),
                cc=array(mail),
                bcc=array(mail),
                subject=text(maxLength=998),
                body=text(maxLength=65_536),
                attachments=array(
                    args(
                        "filename content",
                        filename=text(minLength=1),
                        content=text("Base64", pattern="^[A-Za-z0-9+/]*={0,2}$"),
                        mimeType=text(pattern="^[a-z]+/[a-z0-9.+-]+$"),
                    ),
                    maxItems=25,
                ),
            ),
        ),
        tool(
            "mail_search",
            "Searches mail.",
            args(
                "query",
                query=text(),
                max_results=number(minimum=1, maximum=500),
                after=text(format="date"),
                has_attachment=flag(),
            ),
        ),
        tool(
            "mail_label",
            "Labels mail.",
            args("ids", ids=array(text(), minItems=1, maxItems=1000), add=array(text()), remove=array(text())),
        ),
        tool(
            "calendar_create_event",
            "Makes an appointment.",
            args(
                "summary start end",
                summary=text(),
                description=text(maxLength=8192),
                location=text(),
                start={"anyOf": [moment, day]},
                end={"anyOf": [moment, day]},
                attendees=array(
                    args(
                        "email",
                        email=mail,
                        optional=flag(),
                        responseStatus=one_of("needsAction", "declined", "tentative", "accepted"),
                    ),
                    maxItems=200,
                ),
                recurrence=array(text(pattern="^(RRULE|EXDATE|RDATE)[:;].+")),
                reminders=args(useDefault=flag(), overrides=array(reminder, maxItems=5)),
            ),
        ),
        tool(
            "calendar_list_events",
            "Lists appointments.",
            args(
                timeMin=text(format="date-time"),
                timeMax=text(format="date-time"),
                maxResults=number(default=250),
                q=text(),
            ),
        ),
        tool(
            "calendar_free_busy",
            "When people are free.",
            args(
                "timeMin timeMax items",
                timeMin=text(format="date-time"),
                timeMax=text(format="date-time"),
                items=array(args("id", id=text())),
            ),
        ),
        tool(
            "sheet_read",
            "Reads cells.",
            args(
                "spreadsheet_id range",
                spreadsheet_id=text(),
                range=text("A1 notation", pattern=r"[A-Z]{1,3}\d+(:[A-Z]{1,3}\d+)?"),
            ),
        ),
        tool(
            "sheet_write",
            "Writes cells.",
            args(
                "spreadsheet_id range values",
                spreadsheet_id=text(),
                range=text(),
                values=array(array(cell, maxItems=10_000), minItems=1, maxItems=10_000),
                raw=flag(),
            ),
        ),
        tool(
            "sheet_format",
            "Formats cells.",
            args(
                "spreadsheet_id range",
                spreadsheet_id=text(),
                range=text(),
                background=color,
                foreground=color,
                bold=flag(),
                number_format=text(),
            ),
        ),
        tool(
            "document_append",
            "Writes parts inside parts.",
            args("document_id part", document_id=text(format="uuid"), part={"$ref": "#/$defs/part"})
            | {"$defs": {"part": part}},
        ),
        tool(
            "document_export",
            "Exports.",
            args("document_id format", document_id=text(), format=one_of("pdf", "docx", "odt", "md")),
        ),
        tool(
            "contacts_find",
            "Finds people.",
            args("name", name=text(minLength=1), limit=number(minimum=1, maximum=1000)),
        ),
        tool("current_user", "Who is signed in."),
    ]


def home() -> list[Schema]:
    """A house: small numbers, names in several languages, few words."""
    entity = text("Such as light.kitchen", pattern=r"^[a-z_]+\.[a-z0-9_]+$")
    rgb = {
        "type": "array",
        "prefixItems": [number(minimum=0, maximum=255)] * 3,
        "items": False,
        "minItems": 3,
        "maxItems": 3,
    }
    target = {
        "oneOf": [
            args("entity_id", closed=True, entity_id=array(entity, minItems=1)),
            args("area", closed=True, area=one_of("Küche", "Salón", "客厅", "Ванная", "Bad")),
        ]
    }
    trigger = {
        "anyOf": [
            args("platform at", platform={"const": "time"}, at=text(format="time")),
            args("platform entity_id", platform={"const": "state"}, entity_id=entity, to=text()),
            args(
                "platform event",
                platform={"const": "sun"},
                event=one_of("sunrise", "sunset"),
                offset=text(pattern=r"^-?\d{2}:\d{2}$"),
            ),
        ]
    }
    return [
        tool(
            "light_turn_on",
            "Licht an 💡",
            args(
                "target",
                closed=True,
                target=target,
                brightness_pct=number(minimum=0, maximum=100),
                rgb_color=rgb,
                kelvin=number(minimum=1500, maximum=9000, multipleOf=50),
                transition=number("", "number", minimum=0, maximum=300),
            ),
        ),
        tool("light_turn_off", "Licht aus", args("target", closed=True, target=target)),
        tool(
            "climate_set",
            "Sets the temperature.",
            args(
                "entity_id temperature",
                entity_id=entity,
                temperature=number("", "number", minimum=5, maximum=30, multipleOf=0.5),
                hvac_mode=one_of("off", "heat", "cool", "auto"),
            ),
        ),
        tool(
            "cover_position",
            "Moves a cover.",
            args("entity_id position", entity_id=entity, position=number(minimum=0, maximum=100)),
        ),
        tool(
            "media_play",
            "Plays media.",
            args(
                "entity_id media",
                entity_id=entity,
                media={
                    "anyOf": [
                        args("uri", uri=text(format="uri")),
                        args("query", query=text(), kind=one_of("artist", "album", "track")),
                    ]
                },
                volume=number("", "number", minimum=0, maximum=1),
            ),
        ),
        tool("vacuum", "The vacuum cleaner.", args("command", command=one_of("start", "pause", "return", "locate"))),
        tool(
            "lock",
            "Locks.",
            args("entity_id locked", entity_id=entity, locked=flag(), code=text(pattern="^[0-9]{4,8}$")),
        ),
        tool(
            "automation_add",
            "Adds a rule.",
            args(
                "name triggers actions",
                name=text(minLength=1, maxLength=64),
                triggers=array(trigger, minItems=1),
                actions=array({"type": "object"}, minItems=1),
            ),
        ),
        tool(
            "history", "History.", args("entity_id", entity_id=entity, hours=number(minimum=1, maximum=240, default=24))
        ),
        tool("good_night", "Gute Nacht"),
        tool("status", "All states.", {"type": "object", "properties": {}}),
    ]


#: What one property of a drawn tool may be.
def _draw(rng: random.Random, depth: int = 0) -> Schema:
    said = " ".join(rng.choice(WORDS) for _ in range(rng.randint(3, 24))).capitalize() + "."
    nested = (
        []
        if depth > 3
        else [
            lambda: array(
                _draw(rng, depth + 1), said, minItems=rng.choice([0, 1, 2]), maxItems=rng.choice([10, 1000, 10_000])
            ),
            lambda: _object(rng, depth + 1, rng.randint(1, 5)),
            lambda: {"anyOf": [_object(rng, depth + 1, rng.randint(1, 3)) for _ in range(rng.randint(2, 3))]},
            lambda: {"anyOf": [_draw(rng, depth + 1), {"type": "null"}]},
            lambda: {"type": "object", "additionalProperties": _draw(rng, depth + 1)},
        ]
    )
    plain = [
        lambda: text(said),
        lambda: text(said, maxLength=rng.choice([64, 256, 4096, 65_536])),
        lambda: text(said, pattern=rng.choice(PATTERNS)),
        lambda: text(said, format=rng.choice(FORMATS)),
        lambda: one_of(*rng.sample(WORDS, rng.randint(2, 12)), description=said),
        lambda: number(said, minimum=rng.choice([0, 1, -100]), maximum=rng.choice([10, 100, 65_535, 2**53])),
        lambda: number(said, "number"),
        lambda: flag(said, default=bool(rng.getrandbits(1))),
        lambda: {"type": "object"},
        lambda: {"type": "object", "properties": {}},
        lambda: {"const": rng.choice(WORDS)},
    ]
    return rng.choice(plain * 2 + nested)()


def _object(rng: random.Random, depth: int, most: int) -> Schema:
    names = rng.sample(WORDS, most)
    return args(
        " ".join(rng.sample(names, rng.randint(0, most))),
        closed=rng.random() < 0.5,
        **{name: _draw(rng, depth) for name in names},
    )


PATTERNS = (
    "\\d",
    "^[a-z][a-z0-9-]*$",
    "[A-Z]{2}-\\d+",
    "^\\S+$",
    "\\w+@\\w+",
    "^(?:a|b|c){1,64}$",
    "^[^/]{1,255}$",
    "é|ü|日",
)
FORMATS = ("date", "date-time", "time", "email", "uuid", "uri", "ipv4", "hostname")
TEXT = """
account active address amount archive area author balance batch branch budget bucket calendar campaign card
category channel city client cluster code color column comment contact content country coupon currency cursor
customer date deal deploy depth description device digest discount document domain draft due duration email
enabled endpoint entry event expires feature field file filter flag folder format group header height host
identity image index input interval invoice issue item job key label language layer level limit link list
location lookup manager message method metric mode model month name namespace note number object offer offset
operator order origin owner page parent password path payload payment period phase phone pipeline plan
platform policy position priority product profile project prompt property provider quantity query queue quota
range rate reason record region release report request resource response result revision role route row rule
sample schedule scope score secret section segment sender sequence series server service session severity
shard shape sheet signal site size sku slot snapshot source stage start state status step store stream subject
summary tag target task team template tenant text threshold ticket time title token topic total track trigger
type unit until update url user value vendor version video view volume webhook weight width window worker zone
"""
WORDS = tuple(TEXT.split())


def aggregate(count: int, properties: int, seed: int = SEED) -> list[Schema]:
    """Returns a drawn list, such as a gateway sends that stands before many connectors."""
    rng = random.Random(f"{seed} {count}")
    found = []
    for nth in range(count):
        name = f"{rng.choice(WORDS)}_{rng.choice(('create', 'get', 'list', 'update', 'delete', 'search'))}_{nth}"
        said = " ".join(rng.choice(WORDS) for _ in range(rng.randint(10, 60))).capitalize() + "."
        kind = rng.random()
        parameters = (
            None
            if kind < 0.03
            else {"type": "object", "properties": {}}
            if kind < 0.06
            else _object(rng, 0, rng.randint(2, properties))
        )
        found.append(tool(name, said, parameters))
    return found


#: The lists by name, the smallest first.
LISTS = {
    "pocket": pocket,
    "home": home,
    "workplace": workplace,
    "code_host": code_host,
    "browser": browser,
    "office": office,
    "data_store": data_store,
    "coding_agent": coding_agent,
    "aggregate_58": lambda: aggregate(58, 16),
    "aggregate_1000": lambda: aggregate(1000, 12),
}


def size(tools: list[Schema]) -> int:
    """Returns the bytes of a list as JSON."""
    return len(json.dumps(tools, ensure_ascii=False).encode())


def main() -> None:
    """Writes each list as a JSON file into a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for name, make in LISTS.items():
        tools = make()
        (out / f"{name}.json").write_text(json.dumps(tools, ensure_ascii=False, indent=1), "utf-8")
        print(f"{name}: {len(tools)} tools, {size(tools):,} bytes")


if __name__ == "__main__":
    main()
