"""From "slow and big" to a verified cure: observations -> symptoms -> remedies -> verification."""
