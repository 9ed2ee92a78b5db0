"""Orders of malloc and free: what each costs, and what it costs against last-in first-out."""
