from pted_export import export_speech
from transformers import WhisperForConditionalGeneration

net = WhisperForConditionalGeneration.from_pretrained("whisper-tiny")
export_speech(net, "whisper.pte")
