# The version, said once. ABI is the soname's number.
VERSION := 0.1.0
ABI     := 0
