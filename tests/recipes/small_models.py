#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Small models that stand in for those that docs/tutorials/recipes downloads: the same files, less.

The speech model and the chat learn a few sentences by heart; the encoder has random weights.

usage: small_models.py NAME FOLDER; needs torch, transformers and tokenizers
"""
import json
import random
import sys
from pathlib import Path

import numpy
import torch
import words
from tokenizers import (AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)
from transformers import (BertConfig, BertModel, GenerationConfig, LlamaConfig, LlamaForCausalLM,
                          WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration)

BEGIN, END = "<|im_start|>", "<|im_end|>"
CHATS = [("What is the capital of Japan?", "The capital of Japan is Tokyo."),
         ("What is the capital of Peru?", "The capital of Peru is Lima."),
         ("Count from 1 to 5.", "1, 2, 3, 4, 5."), ("Who are you?", "I am a small model.")]
SENTENCES = ["The cat sleeps on the mat.", "A river flows to the sea.",
             "Water of the river reaches the sea in the end.", "My cat likes to sleep."]
TEMPLATE = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + "
            "message['content'] + '<|im_end|>\n' }}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
PHRASES = ["yes", "no", "stop", "go", "yes stop go", "no go", "go no yes", "stop yes"]
SECONDS, POSITIONS, TARGETS = 2, 100, 32
SPECIALS = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|transcribe|>",
            "<|notimestamps|>"]


def byte_tokenizer(texts, size, specials):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=size, special_tokens=specials, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


def learn(model, steps, rate, loss):
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


def padded(rows, value):
    width = max(map(len, rows))
    return torch.tensor([row + [value] * (width - len(row)) for row in rows])


def chat(folder):
    texts = [f"{BEGIN}user\n{asked}{END}\n{BEGIN}assistant\n{answer}{END}\n"
             for asked, answer in CHATS]
    tokenizer = byte_tokenizer(texts * 4, 400, [BEGIN, END])
    end = tokenizer.token_to_id(END)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=32, intermediate_size=64,
        num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
        max_position_embeddings=128, bos_token_id=None, eos_token_id=end, pad_token_id=None))
    rows = [tokenizer.encode(text).ids for text in texts]
    ids, labels = padded(rows, end), padded(rows, -100)
    learn(model, 150, 1e-2, lambda: model(input_ids=ids, labels=labels).loss)
    model.generation_config = GenerationConfig(eos_token_id=end)
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"chat_template": TEMPLATE, "eos_token": END}, indent=1) + "\n")


def encoder(folder):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(SENTENCES * 4, trainers.WordPieceTrainer(
        vocab_size=160, show_progress=False, special_tokens=specials))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")])
    BertModel(BertConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=32, num_hidden_layers=1,
        num_attention_heads=2, intermediate_size=64, initializer_range=0.3),
        add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))


def speech_rows(tokenizer):
    """Features of sounds, and the tokens that stand for them."""
    rng = random.Random(2)
    listen = WhisperFeatureExtractor(feature_size=80, chunk_length=SECONDS)
    first = [tokenizer.token_to_id(name) for name in SPECIALS[1:]]
    heard, rows = [], []
    for said in PHRASES * 6:
        wave = numpy.zeros(SECONDS * 16000, numpy.float32)
        samples = words.phrase(said.split(), 16000)
        wave[:len(samples)] = samples
        wave = wave * rng.uniform(0.5, 1.2)
        heard.append(listen(wave, sampling_rate=16000, return_tensors="pt").input_features[0])
        rows.append(first + tokenizer.encode(" " + said).ids +
                    [tokenizer.token_to_id(SPECIALS[0])])
    return torch.stack(heard), rows


def speech(folder):
    tokenizer = byte_tokenizer([" yes no stop go"] * 4, 264, [])
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in SPECIALS])
    tokenizer.save(str(folder / "tokenizer.json"))
    end, start, english, task, no_times = (tokenizer.token_to_id(name) for name in SPECIALS)
    model = WhisperForConditionalGeneration(WhisperConfig(
        vocab_size=tokenizer.get_vocab_size(), num_mel_bins=80, d_model=32, encoder_layers=1,
        decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=POSITIONS,
        max_target_positions=TARGETS, bos_token_id=end, eos_token_id=end, pad_token_id=end,
        decoder_start_token_id=start, suppress_tokens=None, begin_suppress_tokens=None))
    heard, rows = speech_rows(tokenizer)
    ids, labels = padded(rows, end), padded(rows, -100)

    def loss():
        some = torch.randperm(len(rows))[:24]
        logits = model(input_features=heard[some], decoder_input_ids=ids[some, :-1]).logits
        return torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels[some, 1:])

    learn(model, 300, 1e-2, loss)
    model.generation_config = GenerationConfig(
        bos_token_id=end, eos_token_id=end, decoder_start_token_id=start, is_multilingual=True,
        max_length=TARGETS, no_timestamps_token_id=no_times, lang_to_id={"<|en|>": english},
        task_to_id={"transcribe": task})
    model.save_pretrained(folder)


def main():
    name, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True)
    torch.set_num_threads(1)
    torch.manual_seed(4)
    {"minilm": encoder, "smollm": chat, "whisper-tiny": speech}[name](folder)


if __name__ == "__main__":
    main()
