# Everyday verbs. Each works from a fresh checkout: the environment is made where it is missing.
.PHONY: build debug test manifests image durations tidy chaos chaos-sql chaos-everything kills seeds soak torture acceptance coverage mutation asan bench quickstart wheel docs screenshots clean

PYTHON = .venv/bin/python
# of what setuptools says, warnings
QUIETLY = {"--global-option": ["--quiet"]}
# its other ways of tracing know nothing of Cython's plugin, and leave .pyx out with a warning
COVERAGE = COVERAGE_CORE=ctrace $(PYTHON) -m coverage
NATIVE_ROOMS = tests/memory tests/records tests/iomanager tests/sort tests/join tests/aggregate tests/exchange \
    tests/transport tests/csv tests/parquet tests/statistics tests/connectors tests/operators

build:            ## release build of the native modules
	bash -c 'source bin/config.sh && ensure_environment test spark'

test: build       ## the tests
	bin/run-tests

tidy: build       ## rules of the house, ruff, mypy
	bin/run-tests tests/tidy

durations: build  ## which folders of tests take more of a run than before; RECORD=1 keeps the shares of these runs
	bin/run-tests -q --shares $(if $(RECORD),record,hold)
	CHAOS=short bin/run-tests -q --rest --shares $(if $(RECORD),record,hold)

debug:            ## tests on a build with assertions and bounds checks
	DREY_BUILD=debug bin/run-tests

asan:             ## tests of the native rooms under the address sanitizer
	DREY_BUILD=debug DREY_ASAN=1 bash -c 'source bin/config.sh && ensure_environment test spark'
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so.6)" ASAN_OPTIONS=detect_leaks=0 \
	    PYTHONMALLOC=malloc $(PYTHON) -m pytest --timeout 900 -p no:cacheprovider $(NATIVE_ROOMS) tests/property \
	    tests/integration

chaos: build      ## kills processes of real clusters; SEED=n repeats one schedule, SHORT=1 a part, FULL=1 100 of each;
                  ## RECORDS=folder keeps what has passed: the same command goes on after an interruption
	CHAOS=$(if $(SHORT),short,$(if $(FULL),full,all)) $(if $(SEED),CHAOS_SEED=$(SEED)) CHAOS_RECORDS=$(RECORDS) \
	    bin/run-tests -q tests/chaos tests/entrypoint tests/ha tests/integration/test_scripts.py \
	    tests/dispatcher/test_crash_points.py

chaos-sql: build  ## queries of TPC-H and TPC-DS while TaskManagers and leaders are killed; SEED=n, SHORT=1, FULL=1 all of TPC-DS
	CHAOS=$(if $(SHORT),short,$(if $(FULL),full,all)) $(if $(SEED),CHAOS_SEED=$(SEED)) bin/run-tests -q tests/chaos/test_sql_queries.py

chaos-everything: build  ## all of TPC-DS, a fault for each query, with everything beside the cluster that runs there; SEED=n, QUERIES=3,42
	CHAOS=full $(if $(SEED),CHAOS_SEED=$(SEED)) $(if $(QUERIES),QUERIES=$(QUERIES)) \
	    bin/run-tests -q -s tests/chaos/test_everything_running.py

kills: build      ## kills writers of outputs and tables at any step, on a disk and on a store: N=500, SEED=n
	KILLS=$(or $(N),500) $(if $(SEED),SEED=$(SEED)) $(PYTHON) -m pytest -q -s tests/commit/test_publication_kills.py

seeds: build      ## clusters of a model over a quorum in virtual time, each by a seed: N=10000, five minutes of two processors
	SEEDS=$(or $(N),10000) $(PYTHON) -m pytest -q -n $$(nproc) --dist load tests/cluster_model -k every_seed

soak: build       ## one session of a real cluster for long, and a consumer that stands still: JOBS=200 STALL_S=300
	CHAOS=all SOAK_JOBS=$(or $(JOBS),200) SOAK_STALL_S=$(or $(STALL_S),300) bin/run-tests -q -s tests/chaos/test_soak.py

torture: build    ## every combination of conditions, then the builds that look inside; hours. PART=1/10: a tenth of the
                  ## first; EXAMPLES=n FRAMES=n MUTATIONS=n SEED=n: how much more is tried, and what
ifdef T           ## make torture T=tests/join N=200: one test many times
	for run in $$(seq $(or $(N),20)); do $(PYTHON) -m pytest -q -x $(T) || exit 1; done
else
	TORTURE=1 TORTURE_PART=$(or $(PART),1/1) bin/run-tests -q --timeout 3600 tests/property $(NATIVE_ROOMS) \
	    tests/integration tests/optimizer tests/jobmaster tests/functions tests/sql tests/window
	FRAMES=$(or $(FRAMES),10000000) bin/run-tests -q tests/transport/test_fuzz.py
	MUTATIONS=$(or $(MUTATIONS),1000000) bin/run-tests -q tests/property/test_strangers_rows.py
	$(MAKE) debug
	$(MAKE) asan
	$(MAKE) coverage
	$(MAKE) build
endif

acceptance: build ## whole programs over a hundred times their memory, against DuckDB, in a control group: MANAGED=16mb
                  ## SLOTS=8 P=heavy_probe,many_groups ARGS="--mode BATCH", "--rounds 3 --cluster", "--disk-full 32",
                  ## "--bit-flips"
	$(PYTHON) -m tests.acceptance --managed $(or $(MANAGED),4mb) --slots $(or $(SLOTS),2) \
	    $(if $(P),--programs $(P)) $(ARGS)

coverage:         ## tests on a build that traces lines, .pyx too; fails when a native module is not in the report
	DREY_BUILD=coverage bash -c 'source bin/config.sh && ensure_environment spark test coverage'
	$(COVERAGE) erase
	$(COVERAGE) run -m pytest -q -p no:cacheprovider tests/memory    # first: are native lines counted at all?
	$(COVERAGE) json -q -o build/coverage.json
	$(PYTHON) -m tests.tidy.native_coverage build/coverage.json engine/memory
	$(COVERAGE) erase
	EXAMPLES=$(or $(EXAMPLES),0.1) $(COVERAGE) run -m pytest -q --timeout 1800 -p no:cacheprovider \
	    -k "not thousand and not million" $(NATIVE_ROOMS); status=$$?; \
	    $(COVERAGE) json -q -o build/coverage.json && \
	    $(PYTHON) -m tests.tidy.native_coverage build/coverage.json && exit $$status

mutation:         ## pure modules with one thing changed at a time, and the changes that no test notices, an hour:
                  ## MODULE=engine.jobmaster.scheduler; then .venv/bin/python -m mutmut show NAME
	bash -c 'source bin/config.sh && ensure_environment test mutation'
	$(PYTHON) -m mutmut run --max-children $(or $(CHILDREN),2) $(if $(MODULE),'$(MODULE)*')
	$(PYTHON) -m mutmut results | grep -v 'not checked' || echo 'every change was noticed'

bench:            ## beside DuckDB and Polars, in turns: make bench W=group@200 ROWS=2000000 RESUME=1; make bench W=kernels
                  ## make bench W=tpch SF=5 LIMIT_MB=1000 RUNS=3 ROUNDS=2; W=tpcds; W=correlated; W=closure; W=cores
                  ## make bench W=dbbench; W=wide; W=on_spark; W=lake; W=contained
	bash -c 'source bin/config.sh && ensure_environment bench spark'
	$(PYTHON) -m tests.bench $(W) $(if $(ROWS),--rows $(ROWS)) $(if $(RESUME),--resume) $(if $(RUNS),--runs $(RUNS)) \
	    $(if $(SF),--scale $(SF)) $(if $(LIMIT_MB),--limit-mb $(LIMIT_MB)) $(if $(ROUNDS),--rounds $(ROUNDS))

quickstart:
	bin/quickstart

wheel:            ## source distribution and wheel, in dist/; the wheel is built from the source distribution, some minutes;
                  ## make docs wheel: with the documentation, which flink-run docs opens
	bash -c 'source bin/config.sh && ensure_build_tools'
	rm -rf dist build/wheel
	mkdir -p dist build/wheel
	$(PYTHON) -c 'from setuptools.build_meta import build_sdist; build_sdist("dist", $(QUIETLY))'
	tar -xzf dist/drey_engine-*.tar.gz -C build/wheel --strip-components 1
	if [ -d build/docs ]; then mkdir build/wheel/engine/delivered && cp -r build/docs build/wheel/engine/delivered/docs; fi
	cd build/wheel && ../../$(PYTHON) -c 'from setuptools.build_meta import build_wheel; build_wheel("../../dist", $(QUIETLY))'
	rm -rf build/wheel
	ls dist

manifests:        ## conf/kubernetes/drey.yaml and job.yaml, which are the chart with its own values
	bash -c 'source bin/config.sh && ensure_environment test spark && ensure_helm'
	$(PYTHON) -m tests.deployment.chart

image:            ## the image of the Dockerfile without Docker, and clusters in it, as root, minutes; --rest does it, too
	bash -c 'source bin/config.sh && ensure_environment test spark && ensure_deployment_tools && ensure_helm'
	$(PYTHON) -m pytest -q tests/deployment

docs:             ## the documentation as pages, in build/docs; strict: a link that leads nowhere ends it
	bash -c 'source bin/config.sh && ensure_environment docs'
	NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true $(PYTHON) -m mkdocs build --quiet --config-file docs/mkdocs.yml

screenshots:      ## pictures of pages for the documentation, of real runs in a headless Chromium
	bash -c 'source bin/config.sh && ensure_environment test && ensure_browser'
	$(PYTHON) -m tests.docs.screenshots

clean:            ## build products (the environment stays)
	find engine tests \( -name '*.so' -o -name '*.c' -o -name '*.html' \) -delete
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f .venv/.built
