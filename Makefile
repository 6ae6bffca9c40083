# Every recipe is one line; on a machine without make, type that line.
PYTHON ?= python3
.PHONY: app test demo check bench bench-diagnosis escapes chaos pictures test-full

app:
	$(PYTHON) bootstrap.py app $(ARGS)

test:
	$(PYTHON) bootstrap.py test $(ARGS)

demo:
	$(PYTHON) bootstrap.py demo $(ARGS)

check:
	$(PYTHON) bootstrap.py check $(ARGS)

bench:
	$(PYTHON) bootstrap.py bench $(ARGS)

bench-diagnosis:
	$(PYTHON) bootstrap.py bench-diagnosis $(ARGS)

escapes:
	$(PYTHON) bootstrap.py escapes $(ARGS)

chaos:
	$(PYTHON) bootstrap.py chaos $(ARGS)

pictures:
	$(PYTHON) bootstrap.py pictures $(ARGS)

test-full:
	$(PYTHON) bootstrap.py test-full $(ARGS)
