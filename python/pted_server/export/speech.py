# SPDX-License-Identifier: MIT
"""Models of Whisper's shape of transformers in the form that pted runs fastest, for the exporter.

The decoder looks at a sound through the keys and values of each of its layers, which are the same
for all tokens. So the encoder gives these, not its states: rows [1, 2 * layers * frames, width],
for each layer its keys and then its values. The decoder reads them where they lie. Its own keys and
values are caches [1, context, heads, head size], as in chat.py.
"""
from __future__ import annotations

import torch


class SpeechEncoder(torch.nn.Module):
    """The features of a window -> keys and values of all layers of the decoder."""

    def __init__(self, model):
        super().__init__()
        self.encoder = model.get_encoder()
        self.attentions = torch.nn.ModuleList(
            layer.encoder_attn for layer in model.get_decoder().layers)

    def forward(self, input_features):
        states = self.encoder(input_features).last_hidden_state
        return torch.cat([part(states) for attention in self.attentions
                          for part in (attention.k_proj, attention.v_proj)], dim=1)


class SpeechDecoder(torch.nn.Module):
    """A token, what the encoder gave, the token's position -> logits of the next token."""

    def __init__(self, model):
        super().__init__()
        import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401  registers llama::
        config = model.config
        self.decoder, self.proj_out = model.get_decoder(), model.proj_out
        self.heads, self.frames = config.decoder_attention_heads, config.max_source_positions
        self.context = config.max_target_positions
        shape = (1, self.context, self.heads, config.d_model // self.heads)
        for i in range(len(self.decoder.layers)):
            for part in ("keys", "values"):
                self.register_buffer(f"cache_{part}_{i}", torch.zeros(shape), persistent=False)

    def by_heads(self, states):
        return states.reshape(*states.shape[:2], self.heads, -1)

    def look_back(self, index, states, start):
        """Attention to the tokens so far."""
        own = self.decoder.layers[index].self_attn
        query, *rows = (self.by_heads(part(states))
                        for part in (own.q_proj, own.k_proj, own.v_proj))
        caches = [getattr(self, f"cache_{part}_{index}") for part in ("keys", "values")]
        for row, cache in zip(rows, caches):
            torch.ops.llama.update_cache(row, cache, start)
        seen = torch.ops.llama.custom_sdpa(query, *caches, start, None, 0.0, True, None)
        return own.out_proj(seen.reshape(states.shape))

    def listen(self, index, states, sound):
        """Attention to all frames of the sound."""
        attention = self.decoder.layers[index].encoder_attn
        query = self.by_heads(attention.q_proj(states))
        keys, values = (self.by_heads(sound.narrow(1, at * self.frames, self.frames))
                        for at in (2 * index, 2 * index + 1))
        first = self.frames - states.shape[1]  # as if the last frames were those of the tokens
        heard = torch.ops.llama.custom_sdpa(query, keys, values, first, None, 0.0, False, None)
        return attention.out_proj(heard.reshape(states.shape))

    def forward(self, decoder_input_ids, encoder_hidden_states, cache_position):
        start, count = cache_position[0].item(), decoder_input_ids.shape[1]
        torch._check(start >= 0)
        torch._check(start + count <= self.context)
        # plain look-ups, which ExecuTorch fuses if quantize() has changed the tables; a padding_idx
        # prevents that
        tokens, places = (torch.nn.functional.embedding(ids, table.weight) for ids, table in (
            (decoder_input_ids, self.decoder.embed_tokens),
            (cache_position.unsqueeze(0), self.decoder.embed_positions)))
        states = tokens + places
        for index, layer in enumerate(self.decoder.layers):
            states = states + self.look_back(index, layer.self_attn_layer_norm(states), start)
            states = states + self.listen(index, layer.encoder_attn_layer_norm(states),
                                          encoder_hidden_states)
            inner = layer.activation_fn(layer.fc1(layer.final_layer_norm(states)))
            states = states + layer.fc2(inner)
        return self.proj_out(self.decoder.layer_norm(states))
