"""A backend of Triton that only says that it is there: kernels run in Triton's interpreter (`TRITON_INTERPRET`)."""
