"""The network, from book features to action values, policy and value."""
