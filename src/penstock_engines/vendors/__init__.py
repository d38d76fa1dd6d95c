"""The engines as vendors of the gateway, found through the entry point `penstock.vendors`."""
