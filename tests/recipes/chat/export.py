from pted_export import export_chat
from transformers import AutoModelForCausalLM

net = AutoModelForCausalLM.from_pretrained("smollm")
export_chat(net, "smollm.pte", context=128)
