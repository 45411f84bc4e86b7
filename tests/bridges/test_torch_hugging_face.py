"""Hugging Face models from their configurations, with padding and masks, against a loop over single examples."""

import warnings

import pytest
import torch
from torch.nn.functional import cross_entropy

from psidp.bridges.torch import PrivateStep

transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")
pytestmark = pytest.mark.filterwarnings("ignore")

SMALL = {"vocab_size": 50, "bos_token_id": None, "eos_token_id": None}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small tensors, for which threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def gpt2(attention):
    rates = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    setting = {"n_positions": 16, "n_embd": 24, "n_layer": 2, "n_head": 2, "use_cache": False, **rates, **SMALL}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(attn_implementation=attention, **setting))


def bert(attention):
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    shape = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    setting = {"vocab_size": 50, "max_position_embeddings": 16, **shape, **rates}
    return transformers.BertForSequenceClassification(transformers.BertConfig(attn_implementation=attention, **setting))


def llama(attention):
    shape = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    setting = {"intermediate_size": 48, "max_position_embeddings": 16, "use_cache": False, **shape, **SMALL}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(attn_implementation=attention, **setting))


def checkpointed(attention):
    model = llama(attention)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.gradient_checkpointing_enable()
    return model.train()


def adapted(attention):
    setting = peft.LoraConfig(r=4, target_modules=["c_attn", "c_proj"], lora_dropout=0.0, fan_in_fan_out=True)
    model = peft.get_peft_model(gpt2(attention), setting)
    for name, p in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(p, std=0.1)
    return model


def next_word(output, ids):
    return cross_entropy(output.logits[:, :-1].transpose(1, 2), ids[:, 1:])


def answer(output, label):
    return cross_entropy(output.logits, label)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("make", [gpt2, bert, llama, checkpointed, adapted], ids=lambda f: f.__name__)
def test_a_model_with_padding_has_the_gradient_of_a_loop_over_examples(make, attention):
    torch.manual_seed(5)
    model, n, clip = make(attention), 5, 0.5
    ids, mask = torch.randint(1, 50, (n, 7)), torch.ones(n, 7, dtype=torch.long)
    mask[0, 5:] = mask[2, 3:] = 0
    loss, targets = (answer, torch.randint(0, 2, (n,))) if make is bert else (next_word, ids)
    step = PrivateStep(model, loss, clip=clip, noise_multiplier=2.0**-90, expected_batch=n, slots=0)
    step({"input_ids": ids, "attention_mask": mask}, targets)
    trained = list(step.parameters.values())
    expected = [torch.zeros_like(p, dtype=torch.float64) for p in trained]
    for i in range(n):
        value = loss(model(input_ids=ids[i : i + 1], attention_mask=mask[i : i + 1]), targets[i : i + 1])
        found = torch.autograd.grad(value, trained, allow_unused=True)
        found = [torch.zeros_like(p) if g is None else g for g, p in zip(found, trained, strict=True)]
        norm = float(sum(g.double().square().sum() for g in found) ** 0.5)
        expected = [e + g.double() * min(1.0, clip / norm) / n for e, g in zip(expected, found, strict=True)]
    gap = sum((p.grad - e).square().sum() for p, e in zip(trained, expected, strict=True)) ** 0.5
    assert float(gap / sum(e.square().sum() for e in expected) ** 0.5) < 1e-4


def test_what_others_pad_moves_nothing_of_an_example():
    torch.manual_seed(6)
    model = llama("sdpa")
    step = PrivateStep(model, next_word, clip=1.0, noise_multiplier=1.0, expected_batch=4, micro_batch=4)
    ids, padded = torch.randint(1, 50, (4, 7)), torch.ones(4, 7, dtype=torch.long)
    padded[1:, 3:] = 0
    whole = step.contributions({"input_ids": ids, "attention_mask": torch.ones(4, 7, dtype=torch.long)}, ids)
    others = step.contributions({"input_ids": ids, "attention_mask": padded}, ids)
    assert torch.equal(whole[0], others[0])
    assert not torch.equal(whole[1], others[1])
