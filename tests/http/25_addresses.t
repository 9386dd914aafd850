# A method has one name, at which it is listed, and NAME.METHOD is always an address.
model add
model mlp as add.large
model odd_keys
model methods
model deep as odd_keys.forward
model add as alone.large
option --set=add:max-batch=1
option --set=odd_keys:max-batch=1 --set=odd_keys.pairs:max-batch=2
option --set=methods.encode:max-batch=1
option --set=add.large.forward:weight=2

play each method is listed once
get /v2/models
< 200
json {"models":["add","add.large","alone.large","methods.decode","methods.encode","methods.get_name","methods.get_scale","methods.get_shape","methods.get_table","methods.get_width","methods.is_trained","odd_keys","odd_keys.forward","odd_keys.pairs"]}
post /v2/repository/index {}
< 200
body \[\{"name":"add","version":"1","state":"READY".*,\{"name":"add\.large".*
get /v2/models/stats
< 200
body .*"name":"add",.*"name":"add\.large",.*"name":"odd_keys",.*"name":"odd_keys\.forward",.*

play the method of a program that has only one is an address
get /v2/models/add.forward
< 200
body \{"name":"add","versions":\["1"\],.*
get /v2/models/add.forward/versions/1/ready
< 200
body .*"name":"add".*
get /v2/models/add.forward/versions/2
< 404
json {"error":"model 'add.forward' has no version 2"}
post /v2/models/add.forward/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[1,1,1,1,1,1]}]}
< 200
json {"model_name":"add","model_version":"1","outputs":[{"name":"output_0","datatype":"FP32","shape":[2,3],"data":[2.0,3.0,4.0,5.0,6.0,7.0]}]}
get /v2/models/add.forward/stats
< 200
body .*"name":"add",.*"inference_count":1,.*
post /v2/batch [{"model_name":"add.forward","args":[[[1,2,3],[4,5,6]],[[0,0,0],[0,0,0]]]},{"model_name":"add.backward"}]
< 200
json [{"status":200,"result":[[1.0,2.0,3.0],[4.0,5.0,6.0]]},{"status":404,"error":"no model 'add.backward', see GET /v2/models"}]
get /v2/models/add.large.forward
< 200
body \{"name":"add\.large",.*

play a file is not a method of another file
get /v2/models/alone
< 404
json {"error":"no model 'alone', see GET /v2/models"}
get /v2/models/alone.large.forward
< 200
body \{"name":"alone\.large",.*

play a name takes precedence over an alias
get /v2/models/odd_keys.forward
< 200
body \{"name":"odd_keys\.forward","versions":\["1"\],"platform":"[a-z_]+","inputs":\[\{"name":"input_0","datatype":"FP32","shape":\[-1,4\].*
get /v2/models/odd_keys
< 200
body .*"name":"plain".*
get /v2/models/methods
< 404
json {"error":"no model 'methods', but models of its methods, such as 'methods.decode'"}
get /v2/models/methods.
< 404
json {"error":"no model 'methods.', see GET /v2/models"}
post /v2/models/method/infer {}
< 404
json {"error":"no model 'method', see GET /v2/models"}
get /v2/models/add.
< 404
json {"error":"no model 'add.'; did you mean 'add'?"}

play a setting applies to a file, not to other names with its prefix
get /v2/models/add/stats
< 200
body .*"batch_refusal":"batches are off".*
get /v2/models/add.large/stats
< 200
body (?!.*batches are off).*
get /v2/models/odd_keys/stats
< 200
body .*"batch_refusal":"batches are off".*
get /v2/models/odd_keys.pairs/stats
< 200
body (?!.*batches are off).*
get /v2/models/odd_keys.forward/stats
< 200
body (?!.*batches are off).*
get /v2/models/methods.encode/stats
< 200
body .*"batch_refusal":"batches are off".*
get /v2/models/methods.decode/stats
< 200
body (?!.*batches are off).*
