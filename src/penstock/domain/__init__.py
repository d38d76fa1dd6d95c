"""The things Penstock is about, as data and pure rules: jobs, money, accounts, prices. No I/O and no clock."""
