#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes tests/models/optimum: programs as `optimum-cli export executorch` writes them.

Very small models with random weights, one for each task: text (text-generation; fast.pte with
--use_custom_sdpa and --use_custom_kv_cache), parts (multimodal-text-to-text), masked (fill-mask),
picture (image-classification) and speech (automatic-speech-recognition). answers.json has what
transformers answers, greedily: tokens, or numbers.

The task multimodal-text-to-text loads a picture from the web to know the size of pictures, so it
runs here by optimum's function with a picture of zeros. text2text-generation is left out: the
decoder of T5 cannot be exported by optimum-executorch 1.1 with transformers 5.0.0rc1, "The size of
tensor a (64) must match the size of tensor b (s96)". --t5 tries it.

usage: optimum_tasks.py [--out DIR] [--only NAME,...] [--t5]; needs optimum-executorch 1.1 and
transformers 5.0.0rc1
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch  # noqa: E402

import exported  # noqa: E402

MODELS = Path(__file__).resolve().parents[2] / "tests" / "models"
ANSWER_TOKENS, ROWS, SIDE, MELS, FRAMES = 16, 64, 16, 80, 200
PROMPTS = ["Hi", "What is it?", "one, two, three and four"]
PICTURE_TOKEN = 4
CONTEXT = ("--max_seq_len", str(ROWS))
FAST = (*CONTEXT, "--use_custom_sdpa", "--use_custom_kv_cache")


def decoder_config(vocab):
    return dict(vocab_size=vocab, hidden_size=16, intermediate_size=24, num_hidden_layers=1,
                num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=128,
                initializer_range=0.4, pad_token_id=0, bos_token_id=1, eos_token_id=2)


def vision_config():
    return dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
                image_size=SIDE, patch_size=8, initializer_range=0.4)


def pixels():
    """Bytes that a short text can hold."""
    return [(i * 37 + i // 7) % 256 for i in range(3 * SIDE * SIDE)]


def features():
    """As rounded as they are in the answers."""
    return [((i * 13 + i // 11) % 41 - 20) / 20 for i in range(MELS * FRAMES)]


def rounded(tensor):
    return [round(x, 6) for x in tensor.flatten().tolist()]


# ---------------------------------------------------------------- models and their answers

def greedy(net, tokenizer):
    rows = []
    for prompt in PROMPTS:
        ids = tokenizer.encode(prompt).ids
        out = net.generate(torch.tensor([ids]), do_sample=False, eos_token_id=-1,
                           max_new_tokens=ANSWER_TOKENS)[0, len(ids):].tolist()
        rows.append({"prompt": prompt, "ids": ids, "answer_ids": out,
                     "answer": tokenizer.decode(out)})
    return rows


def text(tokenizer):
    from transformers import LlamaConfig, LlamaForCausalLM
    net = LlamaForCausalLM(LlamaConfig(**decoder_config(tokenizer.get_vocab_size())))
    return net.eval(), lambda: greedy(net, tokenizer)


def parts(tokenizer):
    from transformers import (CLIPVisionConfig, LlamaConfig, LlavaConfig,
                              LlavaForConditionalGeneration)
    net = LlavaForConditionalGeneration(LlavaConfig(
        text_config=LlamaConfig(**decoder_config(tokenizer.get_vocab_size())),
        vision_config=CLIPVisionConfig(**vision_config()), image_token_index=PICTURE_TOKEN,
        vision_feature_layer=-1))
    return net.eval(), lambda: greedy(net, tokenizer)


def masked(_):
    from transformers import BertConfig, BertForMaskedLM
    net = BertForMaskedLM(BertConfig(
        vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=24, max_position_embeddings=32, initializer_range=0.4)).eval()
    ids = [[5, 17, 3, 42, 8, 29]]
    given = {"input_ids": torch.tensor(ids), "attention_mask": torch.ones(1, 6, dtype=torch.long)}
    return net, lambda: {"ids": ids, "logits": rounded(net(**given).logits)}


def picture(_):
    from transformers import ViTConfig, ViTForImageClassification
    net = ViTForImageClassification(ViTConfig(**vision_config(), num_labels=5)).eval()
    given = torch.tensor(pixels()).reshape(1, 3, SIDE, SIDE) / 255
    return net, lambda: {"pixels": bytes(pixels()).hex(), "logits": rounded(net(given).logits)}


def speech(_):
    from transformers import WhisperConfig, WhisperForConditionalGeneration
    net = WhisperForConditionalGeneration(WhisperConfig(
        vocab_size=381, num_mel_bins=MELS, d_model=8, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=8, decoder_ffn_dim=8,
        max_source_positions=FRAMES // 2, max_target_positions=ROWS, init_std=0.4,
        bos_token_id=270, eos_token_id=270, pad_token_id=270, decoder_start_token_id=271)).eval()

    def answer():
        sound = torch.tensor(features()).reshape(1, MELS, FRAMES)
        ids = [271, 272, 275]
        for _ in range(ANSWER_TOKENS):
            logits = net(input_features=sound, decoder_input_ids=torch.tensor([ids])).logits
            ids.append(int(logits[0, -1].argmax()))
        return {"ids": ids[:3], "answer_ids": ids[3:], "logits": rounded(logits[0, -1])}
    return net, answer


NETS = {"text": text, "masked": masked, "picture": picture, "speech": speech, "parts": parts}
TASKS = {"text": "text-generation", "masked": "fill-mask", "picture": "image-classification",
         "speech": "automatic-speech-recognition"}


# ---------------------------------------------------------------- optimum

def write_source(name, net, folder):
    net.save_pretrained(folder)
    if name == "speech":
        from transformers import WhisperFeatureExtractor, WhisperProcessor, WhisperTokenizer
        shutil.copy(MODELS / "whisper" / "tokenizer.json", folder)
        tokenizer = WhisperTokenizer(tokenizer_file=str(folder / "tokenizer.json"))
        WhisperProcessor(WhisperFeatureExtractor(chunk_length=FRAMES // 100),
                         tokenizer).save_pretrained(folder)


def run_optimum(source, task, out, *args):
    subprocess.run([Path(sys.executable).parent / "optimum-cli", "export", "executorch", "--model",
                    source, "--task", task, "--recipe", "xnnpack", "--output_dir", out, *args],
                   check=True)
    return out / "model.pte"


def run_parts(source, out):
    from optimum.exporters.executorch import integrations, main_export
    integrations.VisionExportableModule.prepare_export_inputs = (
        lambda _: (torch.zeros(1, 3, SIDE, SIDE), None))
    main_export(model_name_or_path=str(source), task="multimodal-text-to-text", recipe="xnnpack",
                output_dir=str(out), max_length=ROWS, use_custom_sdpa=True,
                use_custom_kv_cache=True)
    return out / "model.pte"


def export(name, net, out):
    """Programs for chats are in one folder, with their tokenizer."""
    folder = out / ("text" if name == "parts" else name)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        source, made = Path(place) / "source", Path(place) / "made"
        write_source(name, net, source)
        if name == "parts":
            shutil.copy(run_parts(source, made), folder / "parts.pte")
            return
        args = CONTEXT if name in ("text", "speech") else ()
        shutil.copy(run_optimum(source, TASKS[name], made, *args), folder)
        if name == "text":
            shutil.copy(run_optimum(source, TASKS[name], Path(place) / "fast", *FAST),
                        folder / "fast.pte")


def show_t5():
    from transformers import T5Config, T5ForConditionalGeneration
    with tempfile.TemporaryDirectory() as place:
        T5ForConditionalGeneration(T5Config(
            vocab_size=60, d_model=16, d_kv=8, d_ff=24, num_layers=1, num_heads=2,
            decoder_start_token_id=0)).save_pretrained(place)
        run_optimum(place, "text2text-generation", Path(place) / "made")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=MODELS / "optimum")
    parser.add_argument("--only", default=",".join(NETS))
    parser.add_argument("--t5", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.t5:
        show_t5()
        return
    (options.out / "text").mkdir(parents=True, exist_ok=True)
    tokenizer = exported.make_tokenizer()
    tokenizer.save(str(options.out / "text" / "tokenizer.json"), pretty=False)
    path = options.out / "answers.json"
    answers = json.loads(path.read_text()) if path.exists() else {}
    for name in options.only.split(","):
        torch.manual_seed(1)
        net, answer = NETS[name](tokenizer)
        with torch.no_grad():
            answers[name] = answer()
        path.write_text(json.dumps(answers) + "\n")
        export(name, net, options.out)


if __name__ == "__main__":
    main()
