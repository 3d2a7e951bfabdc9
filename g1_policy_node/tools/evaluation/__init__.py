"""`g1-policy evaluate`: one fixed MuJoCo evaluation of policies, side by side."""
