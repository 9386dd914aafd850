from pted_export import export_encoder
from transformers import AutoModel

net = AutoModel.from_pretrained("minilm")
export_encoder(net, "sentences.pte", max_tokens=256, pooling="mean")
