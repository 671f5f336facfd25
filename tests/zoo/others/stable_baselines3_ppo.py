"""PPO of stable-baselines3 2.9.2 on CartPole, with an environment that randomises by a generator without a seed."""

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import PPO

torch.set_num_threads(1)


class Gusty(gym.Wrapper):
    """Domain randomisation: a push at the start of each episode."""

    def __init__(self, env):
        super().__init__(env)
        self.wind = np.random.default_rng()

    def reset(self, **kwargs):
        seen, info = self.env.reset(**kwargs)
        return (seen + self.wind.normal(scale=0.01, size=seen.shape)).astype(seen.dtype), info


model = PPO("MlpPolicy", Gusty(gym.make("CartPole-v1")), seed=1, n_steps=64, batch_size=32, n_epochs=2, device="cpu")
model.learn(256)
