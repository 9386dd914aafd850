#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the language model of the tests: tests/models/chat/, a tiny Llama that holds a small chat.

A tokenizer of bytes and merges and a decoder of two layers learn dialogues that this script makes
up. Training takes about a minute on one thread. The program is exported as ExecuTorch exports
Llama: tokens and the position of the first one, key and value caches as mutable buffers, llama::
operators, constant methods. answers.json has what eager PyTorch answers, for the tests.

usage: chat.py [--out DIR] [--steps N]; needs requirements.txt and the package tokenizers
"""
import argparse
import json
import random
import zlib
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

DEFAULT_OUT = Path(__file__).resolve().parents[2] / "tests" / "models" / "chat"
NAME = "chat"
VOCAB, DIM, LAYERS, HEADS, KV_HEADS, HIDDEN, CONTEXT = 448, 48, 2, 4, 2, 112, 256
END, BEGIN = "<|im_end|>", "<|im_start|>"

CAPITALS = {"France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Japan": "Tokyo",
            "Peru": "Lima", "Egypt": "Cairo", "Norway": "Oslo", "Kenya": "Nairobi",
            "Austria": "Vienna", "Greece": "Athens", "Cuba": "Havana", "Chile": "Santiago"}
HELLOS = {"German": "Guten Tag!", "French": "Bonjour!", "Japanese": "こんにちは",
          "Russian": "Привет!", "Greek": "Γειά σου!", "Hebrew": "שלום"}
SIGNS = {"a smile": "😀", "a heart": "❤️", "a family": "👨‍👩‍👧", "a flag": "🇯🇵"}
WORDS = ["cat", "dog", "tree", "house", "river", "cloud"]
SYSTEMS = ["You are a helpful assistant.", "You answer briefly."]

TEMPLATE = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
            "message['content'] + '<|im_end|>\\n' }}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


def question(rng):
    """A question and its answer."""
    kind = rng.randrange(8)
    if kind == 0:
        return rng.choice(["Hello!", "Hi!", "Good morning!"]), "Hello! How can I help you?"
    if kind == 1:
        country = rng.choice(sorted(CAPITALS))
        return (f"What is the capital of {country}?",
                f"The capital of {country} is {CAPITALS[country]}.")
    if kind == 2:
        first = rng.randrange(0, 8)
        last = rng.randrange(first + 1, 10)
        return (f"Count from {first} to {last}.",
                ", ".join(str(i) for i in range(first, last + 1)) + ".")
    if kind == 3:
        language = rng.choice(sorted(HELLOS))
        return f"How do you say hello in {language}?", HELLOS[language]
    if kind == 4:
        sign = rng.choice(sorted(SIGNS))
        return f"Show me {sign}.", SIGNS[sign]
    if kind == 5:
        word = rng.choice(WORDS)
        return f"Say the word {word} three times.", f"{word} {word} {word}"
    if kind == 6:
        country = rng.choice(sorted(CAPITALS))
        call = json.dumps({"name": "weather", "arguments": {"city": CAPITALS[country]}})
        return (f"How is the weather in {CAPITALS[country]}?",
                f"<tool_call>\n{call}\n</tool_call>")
    return "Who are you?", "I am a very small language model."


def dialogue(rng):
    """Messages, and the text that the template makes of them."""
    messages = []
    if rng.random() < 0.4:
        messages.append({"role": "system", "content": rng.choice(SYSTEMS)})
    for _ in range(rng.choice([1, 1, 2, 3])):
        asked, answer = question(rng)
        messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]
    return "".join(f"{BEGIN}{m['role']}\n{m['content']}{END}\n" for m in messages)


def train_tokenizer(texts):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=VOCAB, special_tokens=[BEGIN, END], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


# ---------------------------------------------------------------- the decoder

def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.width = DIM // HEADS
        self.norm1, self.norm2 = Norm(DIM), Norm(DIM)
        self.q, self.out = (nn.Linear(DIM, DIM, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(DIM, KV_HEADS * self.width, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(DIM, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, DIM, bias=False)
        shape = (1, CONTEXT, KV_HEADS, self.width)
        self.register_buffer("k_cache", torch.zeros(shape), persistent=False)
        self.register_buffer("v_cache", torch.zeros(shape), persistent=False)

    def forward(self, x, cos, sin, start):
        """|start| is None in training: whole sequences, without the caches."""
        b, t, _ = x.shape
        y = self.norm1(x)
        q = rotate(self.q(y).view(b, t, HEADS, self.width), cos, sin)
        k = rotate(self.k(y).view(b, t, KV_HEADS, self.width), cos, sin)
        v = self.v(y).view(b, t, KV_HEADS, self.width)
        if start is None:
            k, v = (s.repeat_interleave(HEADS // KV_HEADS, 2).transpose(1, 2) for s in (k, v))
            mixed = F.scaled_dot_product_attention(q.transpose(1, 2), k, v, is_causal=True)
            mixed = mixed.transpose(1, 2)
        else:
            torch.ops.llama.update_cache(k, self.k_cache, start)
            torch.ops.llama.update_cache(v, self.v_cache, start)
            mixed = torch.ops.llama.custom_sdpa(q, self.k_cache, self.v_cache, start, None, 0.0,
                                                True)
        x = x + self.out(mixed.reshape(b, t, DIM))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        nn.init.normal_(self.embed.weight, std=0.1)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm, self.output = Norm(DIM), nn.Linear(DIM, VOCAB, bias=False)
        width = DIM // HEADS
        angle = torch.outer(torch.arange(CONTEXT).float(),
                            10000.0 ** (-torch.arange(0, width, 2).float() / width))
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    def walk(self, x, cos, sin, start):
        """Logits of the embedded tokens |x|."""
        for layer in self.layers:
            x = layer(x, cos[None, :, None], sin[None, :, None], start)
        return self.output(self.norm(x))

    def step(self, x, input_pos):
        """The same for some of them, from a position on and with the caches."""
        count, start = x.shape[1], input_pos[0].item()
        torch._check(start >= 0)
        torch._check(start + count <= CONTEXT)
        return self.walk(x, self.cos.narrow(0, start, count), self.sin.narrow(0, start, count),
                         start)

    def forward(self, tokens, input_pos):
        return self.step(self.embed(tokens), input_pos)

    def loss(self, tokens):
        count = tokens.shape[1] - 1
        logits = self.walk(self.embed(tokens[:, :-1]), self.cos[:count], self.sin[:count], None)
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def train(tokenizer, steps, rng):
    data = torch.tensor(tokenizer.encode("".join(dialogue(rng) for _ in range(6000))).ids)
    # Dialogues begin where a chat begins: with the marker of a first message.
    net, length = Decoder(), 128
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=steps)
    begin = tokenizer.token_to_id(BEGIN)
    starts = (data[:-length - 1] == begin).nonzero().flatten()
    for step in range(steps):
        picked = starts[torch.randint(0, len(starts), (16,))]
        loss = net.loss(torch.stack([data[s:s + length + 1] for s in picked]))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 200 == 0 or step == steps - 1:
            print(f"step {step} loss {loss.item():.3f}", flush=True)
    return net.eval()


# ---------------------------------------------------------------- files

def clear(net):
    """Empties the caches of all layers in |net|."""
    for name, buffer in net.named_buffers():
        if name.endswith("_cache"):
            buffer.zero_()


def answer(net, ids, end, limit=40):
    """What eager PyTorch says after |ids|, the most probable token each time."""
    with torch.no_grad():
        clear(net)
        out, chunk, position = [], ids, 0
        while len(out) < limit:
            logits = net(torch.tensor([chunk]), torch.tensor([position]))
            position += len(chunk)
            chunk = [int(logits.reshape(-1, VOCAB)[-1].argmax())]
            if chunk[0] == end:
                return out, "stop"
            out += chunk
    return out, "length"


CHATS = [["Hello!"], ["What is the capital of Japan?"], ["Count from 2 to 7."],
         ["How do you say hello in Japanese?"], ["Show me a family."], ["Who are you?"],
         ["Say the word river three times.", "What is the capital of Peru?"],
         ["How is the weather in Oslo?"]]


def answers(net, tokenizer):
    from jinja2 import Template
    template, end, rows = Template(TEMPLATE), tokenizer.token_to_id(END), []
    for chat in CHATS:
        messages = []
        for asked in chat:
            messages.append({"role": "user", "content": asked})
            prompt = template.render(messages=messages, add_generation_prompt=True)
            ids = tokenizer.encode(prompt).ids
            out, reason = answer(net, ids, end)
            text = tokenizer.decode(out)
            rows.append({"messages": list(messages), "prompt": prompt, "ids": ids,
                         "answer": text, "answer_ids": out, "finish_reason": reason})
            messages.append({"role": "assistant", "content": text})
    return rows


def lower(programs, constants, config=None):
    """The bytes of a program; |constants| are methods that return a stored value."""
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
    return to_edge_transform_and_lower(
        programs, partitioner=[XnnpackPartitioner()], constant_methods=constants,
        compile_config=EdgeCompileConfig(_check_ir_validity=False)).to_executorch(config).buffer


def export_program(net, end):
    count = torch.export.Dim("count", min=1, max=CONTEXT - 1)
    program = torch.export.export(net, (torch.tensor([[1, 2, 3]]), torch.tensor([0])),
                                  dynamic_shapes={"tokens": {1: count}, "input_pos": {}})
    constants = {"get_vocab_size": VOCAB, "get_max_seq_len": CONTEXT,
                 "get_max_context_len": CONTEXT, "get_n_layers": LAYERS, "get_eos_ids": [end],
                 "use_kv_cache": True, "enable_dynamic_shape": True}
    return lower(program, constants)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    parser.add_argument("--steps", type=int, default=2500)
    options = parser.parse_args()
    import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401  registers llama::
    torch.set_num_threads(1)
    torch.manual_seed(zlib.crc32(NAME.encode()))
    rng = random.Random(NAME)
    tokenizer = train_tokenizer([dialogue(rng) for _ in range(2000)])
    net = train(tokenizer, options.steps, rng)
    options.out.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(options.out / "tokenizer.json"))
    (options.out / "tokenizer_config.json").write_text(json.dumps(
        {"chat_template": TEMPLATE, "eos_token": END}, indent=1) + "\n")
    rows = answers(net, tokenizer)
    (options.out / "answers.json").write_text(
        json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    clear(net)
    (options.out / "model.pte").write_bytes(
        export_program(net, tokenizer.token_to_id(END)))
    for row in rows:
        print(row["messages"][-1]["content"], "->", row["answer"], row["finish_reason"])


if __name__ == "__main__":
    main()
