"""The Trainer of transformers 5.24.0 on a tiny BERT, with labels numbered in the order of a set of strings."""

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(7)
torch.set_num_threads(1)
SYMBOLS = ["BTCUSDT", "ETHUSDT", "SOLUSDT", "XRPUSDT", "ADAUSDT", "DOGEUSDT"]
LABELS = {name: i for i, name in enumerate(set(SYMBOLS))}


class Rows(Dataset):
    def __init__(self):
        draw = torch.Generator().manual_seed(7)
        self.tokens = torch.randint(0, 50, (64, 12), generator=draw)

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        return {"input_ids": self.tokens[i], "labels": LABELS[SYMBOLS[i % len(SYMBOLS)]]}


config = BertConfig(
    vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_labels=6
)
model = BertForSequenceClassification(config)
arguments = TrainingArguments(
    "out", max_steps=6, per_device_train_batch_size=8, report_to=[], use_cpu=True, save_strategy="no", seed=7
)
Trainer(model=model, args=arguments, train_dataset=Rows()).train()
