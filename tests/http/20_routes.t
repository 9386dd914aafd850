# Which paths exist, and with which methods.
model add
model methods
model add as a.b-c_D
model mlp
model scalars
model tally
option --workers=3 --sequence-count-max=5 --sequence-timeout=7s

play unknown paths
get /console/
< 404
get /v2/nothing
< 404
get /v2/models/
< 404
get /v2/models/add/
< 404
get /v2/models/add/versions
< 404
get /v2/health
< 404
get //v2
< 404
get /v2/health/live/more
< 404

play unknown model
get /v2/models/nope
< 404
json {"error": "no model 'nope', see GET /v2/models"}
get /v2/models/nope/ready
< 404
post /v2/models/nope/infer {}
< 404
post /v2/models/nope/versions/1/infer {}
< 404

play unknown version
get /v2/models/add/versions/7
< 404
json {"error": "model 'add' has no version 7"}
get /v2/models/add/versions/x
< 404
get /v2/models/add/versions/0
< 404
get /v2/models/add/versions/99999999999999999999
< 404

play settings of the log
get /v2/logging
< 200
json {"log_file":"","log_error":true,"log_warning":true,"log_info":true,"log_verbose_level":0,"log_format":"ISO8601"}
post /v2/logging {"log_info":false}
< 403
body .*for administrators.*
get /v2/logging/more
< 404

play settings of traces
get /v2/trace/setting
< 200
json {"trace_level":["OFF"],"trace_rate":"100","trace_count":"-1","log_frequency":"0","trace_file":"","trace_mode":"opentelemetry"}
get /v2/models/add/trace/setting
< 200
body .*"trace_level":\["OFF"\].*
get /v2/models/nope/trace/setting
< 404
get /v2/models/add/versions/1/trace/setting
< 404
post /v2/trace/setting {}
< 403
post /v2/models/add/trace/setting {}
< 403

play shared memory is off
get /v2/systemsharedmemory/status
< 501
json {"error": "shared memory: it is not in use here, see --shared-memory"}
get /v2/systemsharedmemory/region/a/status
< 501
post /v2/systemsharedmemory/region/a/register {"key":"/a","offset":0,"byte_size":1}
< 501
post /v2/systemsharedmemory/region/a/unregister {}
< 501
post /v2/systemsharedmemory/unregister {}
< 501
get /v2/systemsharedmemory/region//status
< 404
get /v2/systemsharedmemory/region/%00/status
< 400
json {"error": "region name: expected at most 128 characters, with valid %XX"}
get /v2/systemsharedmemory/region/a/register
< 405

play shared memory of CUDA
get /v2/cudasharedmemory/status
< 200
json []
get /v2/cudasharedmemory/region/a%20b/status
< 404
json {"error": "no region 'a b' of CUDA shared memory is registered"}
post /v2/cudasharedmemory/region/a/register {"raw_handle":{"b64":"AA=="},"device_id":0,"byte_size":1}
< 501
post /v2/cudasharedmemory/region/a/unregister {}
< 200
post /v2/cudasharedmemory/unregister {}
< 200

play wrong method
> POST /v2/health/live HTTP/1.1
> Host: a
> Content-Length: 0
>
< 405
field Allow: GET, HEAD
get /v2/models/add/infer
< 405
field Allow: POST
> DELETE /v2/models/add HTTP/1.1
> Host: a
>
< 405
field Allow: GET, HEAD
> OPTIONS /v2 HTTP/1.1
> Host: a
>
< 405
> TRACE /v2 HTTP/1.1
> Host: a
>
< 405
open

play CONNECT is refused
> CONNECT example.org:80 HTTP/1.1
> Host: example.org:80
>
< 400

play a method that does not exist
> BREW /v2 HTTP/1.1
> Host: a
>
< 400
closed

play queries that nobody looks at
get /v2/health/live?a=b&c=%zz
< 200
get /metrics?name%5B%5D=a
< 200
get /console/main.js?v=2
< 200
get /v1/models?api-version=2024-10-21
< 200
get /v2/models?
< 200
get /v2/models?&&
< 200

play queries with parameters that the path does not know
get /v2/models/add?version=2
< 200
get /v2?a%20b=c
< 200
get /v2/models?a=%zz
< 200
post /v2/models/add/call?x-amzn-trace=1&a=b {"args":[]}
< 400
json {"error": "args[0]: missing, expected float32[2,3]"}
get /v2/nobody?a=b
< 404

play queries with parameters that were meant otherwise
get /v2/models/add?top_k=2
< 400
json {"error": "query: this path takes no parameters, got 'top_k'"}
post /v2/models/add/call?topk=2 {"args":[]}
< 400
json {"error": "query: expected binary, profile, order or top_k, got 'topk'; did you mean 'top_k'?"}
post /v2/models/add/call?top-k=2 {"args":[]}
< 400
json {"error": "query: expected binary, profile, order or top_k, got 'top-k'; did you mean 'top_k'?"}
post /v2/models/add/infer?binary=yes {"inputs":[]}
< 400
json {"error": "binary: expected 0 or 1, got 'yes'"}
post /v1/models/add:predict?top_k=2 {"instances":[]}
< 400
json {"error": "query: expected profile, got 'top_k'"}
post /v2/models/add/call?binary=1&binary=1 {"args":[]}
< 400
json {"error": "query: 'binary' is given twice"}
get /v2/models?binary=%zz
< 400
json {"error": "query: binary: expected at most 64 characters, with valid %XX"}

play absolute form
get http://example.org/v2/health/live
< 200
get HTTP://example.org
< 200

play percent-encoding is decoded once
get /v2/models/%61dd
< 200
get /v2/models/a%2eb-c_D
< 200
get /v2/models/%2561dd
< 404

play invalid percent-encoding
get /v2/models/a%zz
< 400
get /v2/models/a%4
< 400
get /v2/models/a%00
< 400
get /v2/models/%0d%0aX
< 400

play names that look like paths
get /v2/models/../models/add
< 404
get /v2/models/%2e%2e%2fadd
< 404
get /v2/models/..
< 404

play a name of the maximal length, and a longer one
get /v2/models/nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
< 404
get /v2/models/nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
< 400

play the configuration of a model of fixed sizes
get /v2/models/add/config
< 200
json {"name":"add","platform":"executorch_pte","backend":"pted","version_policy":{"all":{}},"max_batch_size":0,"input":[{"name":"input_0","data_type":"TYPE_FP32","dims":[2,3],"format":"FORMAT_NONE","is_shape_tensor":false,"allow_ragged_batch":false,"optional":false},{"name":"input_1","data_type":"TYPE_FP32","dims":[2,3],"format":"FORMAT_NONE","is_shape_tensor":false,"allow_ragged_batch":false,"optional":false}],"output":[{"name":"output_0","data_type":"TYPE_FP32","dims":[2,3],"label_filename":"","is_shape_tensor":false}],"instance_group":[{"name":"cpu","kind":"KIND_CPU","count":3,"gpus":[]}],"parameters":{},"model_warmup":[],"model_transaction_policy":{"decoupled":false}}
get /v2/models/add/versions/1/config
< 200
get /v2/models/add/versions/2/config
< 404
get /v2/models/nope/config
< 404

play the configuration of a model whose first dim counts samples
get /v2/models/mlp/config
< 200
body .*"max_batch_size":32,.*"dims":\[12\],.*"output":.*"dims":\[5\],.*

play the configuration of a model with state
get /v2/models/tally/config
< 200
body (?!.*dynamic_batching).*"max_batch_size":0,.*"sequence_batching":\{"oldest":\{"max_candidate_sequences":5,.*"max_sequence_idle_microseconds":7000000,.*

play the configuration of a model with fixed arguments
get /v2/models/scalars/config
< 200
body .*"data_type":"TYPE_INT64","dims":\[\].*"optional":true.*

play constant methods are shown with their values
get /v2/models/methods.get_width
< 200
json {"name":"methods.get_width","versions":["1"],"platform":"executorch_pte","inputs":[],"outputs":[{"name":"output_0","datatype":"INT64","shape":[]}],"precision":"fast","constants":{"get_name":"autoencoder \u00e9","get_scale":0.1,"get_shape":[10,4],"get_table":[0,3,6,9,12],"get_width":10,"is_trained":false}}
get /v2/models/methods.encode
< 200
body .*"constants":\{"get_name":.*"get_width":10,.*"get_table":\[0,3,6,9,12\]\}\}
get /v2/models/add
< 200
body (?!.*constants).*
