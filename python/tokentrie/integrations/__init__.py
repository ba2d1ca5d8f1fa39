"""tokentrie inside programs that people already run, one file each. A host is imported when something needs it.

| file | host |
| --- | --- |
| `logits` | any loop that has a row of logits |
| `device` | `Batch` over rows of logits on another device |
| `llama_cpp` | llama-cpp-python |
| `ray` | Ray Data |
| `ray_serve` | the server over a cluster, with Ray Serve |
| `torch` | the walk through sets on a device, as torch operations |
| `transformers` | transformers: `generate`, beams, skipping ahead, a head of the legal tokens |
| `vllm` | vLLM, both interfaces of its logits processors |
"""
