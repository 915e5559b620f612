"""Attribution: which part of the input a score depends on."""
