"""Initial weights that several models share."""

import torch
from torch import nn


def xavier(module: nn.Module) -> None:
    """Draw the weights of all linear layers in a module: Glorot & Bengio 2010; biases are 0."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def truncated(module: nn.Module) -> None:
    """Draw the weights of all linear layers in a module: truncated normal (0.02); biases are 0."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.trunc_normal_(layer.weight, std=0.02)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


@torch.no_grad()
def embeddings(module: nn.Module) -> None:
    """Draw all embeddings in a module from N(0, 1/dim), so that scaled ones have variance 1.

    Call it after `xavier`: an output layer may share its matrix with an embedding.
    """
    for table in module.modules():
        if isinstance(table, nn.Embedding):
            nn.init.normal_(table.weight, std=table.embedding_dim**-0.5)
            if table.padding_idx is not None:
                table.weight[table.padding_idx].zero_()
