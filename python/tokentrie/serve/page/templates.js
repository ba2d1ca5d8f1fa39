/** Templates to begin with: three ways in which models write calls. */

const MARKED = `{%- if tools %}<|im_start|>system
You may call:
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% endif -%}
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{% if message.reasoning_content %}<think>
{{ message.reasoning_content }}
</think>

{% endif %}{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}{{ '\\n' }}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}`;

const LISTED = `{{- bos_token }}
{%- if tools %}[TOOLS] {{ tools | tojson }} [/TOOLS]{% endif %}
{%- for message in messages %}
{%- if message.role == 'assistant' %}
{%- if message.tool_calls %}[CALLS] [
{%- for call in message.tool_calls %}{% if not loop.first %}, {% endif -%}
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
{%- endfor %}]{{ eos_token }}
{%- else %} {{ message.content }}{{ eos_token }}{% endif %}
{%- elif message.role == 'tool' %}[RESULT] {{ message.content }} [/RESULT]
{%- else %}[INST] {{ message.content }} [/INST]{% endif %}
{%- endfor %}`;

const TAGGED = `{%- if tools %}<|system|>
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}{% endif %}
{%- for message in messages -%}
<|{{ message.role }}|>
{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}{{ '\\n' }}<call>
<function={{ call.function.name }}>
{%- for name, value in call.function.arguments | items %}
<parameter={{ name }}>
{{ value if value is string else value | tojson }}
</parameter>
{%- endfor %}
</function>
</call>
{%- endfor %}<|end|>
{% endfor -%}
{%- if add_generation_prompt %}<|assistant|>
{% endif %}`;

export const TEMPLATES = {
  "JSON between markers": { template: MARKED },
  "A list of calls": { template: LISTED },
  "Tags for arguments": { template: TAGGED },
};

export const TOOLS = [
  {
    name: "weather",
    description: "The weather of a city",
    parameters: {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer" } },
      required: ["city"],
    },
  },
];

export const QUESTION = { role: "user", content: "Is it warm in Oslo?" };

/** Reply of the example; arguments are as clients of chats send them, and as templates read them. */
export const REPLY = {
  role: "assistant",
  reasoning_content: "I should look at the weather.",
  content: "Let me look.",
  tool_calls: [
    { id: "call00001", type: "function", function: { name: "weather", arguments: { city: "Oslo", days: 2 } } },
  ],
};
