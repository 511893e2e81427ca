"""scrimp: black-box attacks on text models that spend as few queries as they can."""
