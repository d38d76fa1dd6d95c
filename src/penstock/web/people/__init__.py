"""People of an account, their roles and keys; and the directory of all people, for operators."""
