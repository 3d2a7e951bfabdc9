"""Training in Isaac Lab on the GPU, from the same contract the robot runs."""
