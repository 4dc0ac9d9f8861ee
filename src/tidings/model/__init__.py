"""The words of the engine as types. Standard library only; imports nothing of ours."""
