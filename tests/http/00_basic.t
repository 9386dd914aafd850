# The routes as a client meets them first.
model add

play server metadata
get /v2
< 200
field Content-Type: application/json
json {"name": "pted", "version": "0.1.0", "extensions": ["binary_tensor_data","classification","logging","model_configuration","model_repository", "model_repository(unload_dependents)", "schedule_policy","sequence","sequence(string_id)","statistics","trace"], "scopes": ["infer", "read"]}
open

play server metadata with the slash of the specification
get /v2/
< 200

play live and ready
get /v2/health/live
< 200
json {"live": true}
get /v2/health/ready
< 200
json {"ready": true}

play list of models
get /v2/models
< 200
json {"models": ["add"]}

play model metadata
get /v2/models/add
< 200
json {"name": "add", "versions": ["1"], "platform": "executorch_pte", "inputs": [{"name": "input_0", "datatype": "FP32", "shape": [2, 3]}, {"name": "input_1", "datatype": "FP32", "shape": [2, 3]}], "outputs": [{"name": "output_0", "datatype": "FP32", "shape": [2, 3]}], "precision": "fast", "lacks": {"batches": "dim 0 of input 'input_0' is not 1"}}
get /v2/models/add/versions/1
< 200

play model readiness
get /v2/models/add/ready
< 200
json {"name": "add", "ready": true}
get /v2/models/add/versions/1/ready
< 200

play repository index
post /v2/repository/index
< 200
json [{"name": "add", "version": "1", "state": "READY", "lacks": {"batches": "dim 0 of input 'input_0' is not 1"}}]
post /v2/repository/index {"ready": true}
< 200
json [{"name": "add", "version": "1", "state": "READY", "lacks": {"batches": "dim 0 of input 'input_0' is not 1"}}]

play inference with JSON tensors
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 200
field Content-Type: application/json
no-field Inference-Header-Content-Length
json {"model_name": "add", "model_version": "1", "outputs": [{"name": "output_0", "datatype": "FP32", "shape": [2, 3], "data": [11, 22, 33, 44, 55, 66]}]}
post /v2/models/add/versions/1/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 200

play the id is echoed
post /v2/models/add/infer {"id": "a b\\u00e9", "inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 200
body .*"id":"a b.*
