#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the encoder of the tests: tests/models/encoder/, a tiny BERT with a WordPiece tokenizer.

Its weights are random. The program has three methods with the same weights: forward for one text
of any length, rows for several texts of a fixed length, score for pairs of texts. answers.json has
the ids of the library tokenizers and what eager PyTorch computes, for the tests.

usage: encoder.py [--out DIR]; needs requirements.txt and the package tokenizers
"""
import argparse
import json
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

DEFAULT_OUT = Path(__file__).resolve().parents[2] / "tests" / "models" / "encoder"
VOCAB, DIM, HEADS, HIDDEN, LENGTH, FIXED, ROWS = 320, 32, 2, 64, 48, 12, 8

TEXTS = [
    "The cat sat on the mat.", "A dog runs in the park!", "cat", "",
    "Rivers carry water from the mountains to the sea.", "Wie geht es dir? Größe, naïve café.",
    "unknown: 日本 😀 xyzzy", "one two three four five six seven eight nine ten eleven twelve",
]
LONG = " ".join(["the river runs to the sea"] * 12)
QUERY = "Where does the water go?"
CARD = {
    "embedding": {"pooling": "mean", "normalize": True},
    "methods": {"rows": {"embedding": {"pooling": "cls", "normalize": False}}},
}


def train_tokenizer():
    from tokenizers import (Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                            trainers)
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(TEXTS[:6] + [LONG, QUERY] * 2, trainers.WordPieceTrainer(
        vocab_size=VOCAB, show_progress=False,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", tokenizer.token_to_id("[CLS]")),
                        ("[SEP]", tokenizer.token_to_id("[SEP]"))])
    return tokenizer


class Encoder(nn.Module):
    """One layer of BERT: the last hidden state of each token."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, DIM)
        self.places, self.types = nn.Embedding(LENGTH, DIM), nn.Embedding(2, DIM)
        self.first, self.second, self.third = (nn.LayerNorm(DIM) for _ in range(3))
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, HIDDEN), nn.Linear(HIDDEN, DIM)

    def forward(self, input_ids, attention_mask, token_type_ids):
        b, n = input_ids.shape
        x = self.words(input_ids) + self.places.weight[:n] + self.types(token_type_ids)
        x = self.first(x)
        # Slices, because with chunk() the exporter fixes the number of texts.
        y = self.qkv(x)
        q, k, v = (y[:, :, i * DIM:(i + 1) * DIM].view(b, n, HEADS, DIM // HEADS).transpose(1, 2)
                   .reshape(-1, n, DIM // HEADS) for i in range(3))
        mask = (1.0 - attention_mask.to(x.dtype)) * -1e9
        scores = torch.bmm(q, k.transpose(1, 2)) / (DIM // HEADS) ** 0.5
        scores = scores.view(b, HEADS, n, n) + mask[:, None, None, :]
        mixed = torch.bmm(scores.softmax(-1).view(-1, n, n), v)
        mixed = mixed.view(b, HEADS, n, DIM // HEADS).transpose(1, 2).reshape(b, n, DIM)
        x = self.second(x + self.out(mixed))
        return self.third(x + self.down(F.gelu(self.up(x))))


class Score(nn.Module):
    """A cross-encoder: one logit for a pair, from the first token."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder, self.head = encoder, nn.Linear(DIM, 1)

    def forward(self, input_ids, attention_mask, token_type_ids):
        return {"logits": self.head(self.encoder(input_ids, attention_mask, token_type_ids)[:, 0])}


class Hidden(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids, attention_mask, token_type_ids):
        return {"last_hidden_state": self.encoder(input_ids, attention_mask, token_type_ids)}


class Classes(nn.Module):
    """Scores of three classes: inputs and result have the shapes of an encoder of texts, too."""

    def __init__(self, words):
        super().__init__()
        self.words, self.head = nn.Embedding(words, 4), nn.Linear(4, 3)

    def forward(self, input_ids, attention_mask, token_type_ids):
        mask = attention_mask.unsqueeze(-1).float()
        return self.head((self.words(input_ids) * mask).sum(1) / mask.sum(1))


def arguments(rows, length):
    one = torch.ones(rows, length, dtype=torch.long)
    return {"input_ids": one, "attention_mask": one.clone(), "token_type_ids": one * 0}


def export(module, rows, length, dims):
    shapes = {name: dims for name in arguments(1, 1)}
    return torch.export.export(module, (), arguments(rows, length), dynamic_shapes=shapes,
                               strict=False)


def encoded(encoding):
    ids = torch.tensor([encoding.ids])
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids),
            "token_type_ids": torch.tensor([encoding.type_ids])}


def answers(tokenizer, encoder, score):
    """Vectors of single texts, before pooling cut to what the pooling takes; scores of pairs."""
    single, pairs = [], []
    for text in TEXTS + [LONG]:
        tokenizer.enable_truncation(LENGTH)
        encoding = tokenizer.encode(text)
        hidden = encoder(**encoded(encoding))[0]
        tokenizer.enable_truncation(FIXED)
        short = tokenizer.encode(text)
        first = encoder(**encoded(short))[0, 0]
        single.append({"text": text, "ids": encoding.ids, "mean": hidden.mean(0).tolist(),
                       "short_ids": short.ids, "cls": first.tolist()})
    for text in TEXTS + [LONG]:
        tokenizer.enable_truncation(LENGTH)
        encoding = tokenizer.encode(QUERY, text)
        pairs.append({"text": text, "tokens": len(encoding.ids),
                      "logit": score(**encoded(encoding))["logits"].item()})
    return {"single": single, "query": QUERY, "pairs": pairs}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    out = parser.parse_args().out
    torch.manual_seed(7)
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = train_tokenizer()
    encoder = Encoder().eval()
    for bias in (encoder.words.weight, encoder.qkv.weight):
        bias.data.mul_(1.5)
    score = Score(encoder).eval()
    score.head.weight.data.mul_(4)
    from executorch.exir import to_edge
    length, rows = torch.export.Dim("n", min=1, max=LENGTH), torch.export.Dim("b", min=1, max=ROWS)
    methods = {"forward": export(Hidden(encoder), 1, 16, {1: length}),
               "rows": export(Hidden(encoder), 4, FIXED, {0: rows}),
               "score": export(score, 1, 16, {1: length})}
    (out / "model.pte").write_bytes(to_edge(methods).to_executorch().buffer)
    tokenizer.no_truncation()
    tokenizer.save(str(out / "tokenizer.json"), pretty=False)
    (out / "model.card.json").write_text(json.dumps(CARD, indent=2) + "\n")
    torch.manual_seed(11)
    classes = export(Classes(tokenizer.get_vocab_size()).eval(), 1, 16, {1: length})
    (out / "classes.pte").write_bytes(to_edge(classes).to_executorch().buffer)
    with torch.no_grad():
        rows = answers(tokenizer, encoder, score)
    (out / "answers.json").write_text(json.dumps(rows, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
