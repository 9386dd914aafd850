# Lists of requests: they have one answer, and they may take each other's results.
model add
model methods
model mlp
model scalars
model ledger
model faults
option --request-timeout=20s

play each request has its own answer
post /v2/batch [{"id":"a","model_name":"add","inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[1,1,1,1,1,1]}]},{"model_name":"add","model_version":"1","args":[[[1,2,3],[4,5,6]],[[0,0,0],[0,0,0]]]},{"id":null,"model_name":"methods.get_width"}]
< 200
json [{"id":"a","status":200,"model_name":"add","model_version":"1","outputs":[{"name":"output_0","datatype":"FP32","shape":[2,3],"data":[2.0,3.0,4.0,5.0,6.0,7.0]}]},{"status":200,"result":[[1.0,2.0,3.0],[4.0,5.0,6.0]]},{"status":200,"result":10}]

play each request has its own way to write NaN
post /v2/batch [{"id":"a","model_name":"add","args":[[[NaN,0,0],[0,0,0]],[[0,0,0],[0,0,0]]]},{"model_name":"add","args":[{"$from":{"id":"a"}},[["-Infinity",0,0],[0,0,0]]]},{"model_name":"add","parameters":{"nan":"null"},"args":[{"$from":{"id":"a"}},[[0,0,0],[0,0,0]]]}]
< 200
body \[\{"id":"a","status":200,"result":\[\[NaN,0.0.*"status":200,"result":\[\["NaN",0.0,.*"status":200,"result":\[\[null,0.0,.*

play results of other requests, in any order
post /v2/batch [{"id":"c","model_name":"add","args":[{"$from":{"id":"b"}},{"$from":{"id":"a","output":"output_0"}}]},{"id":"b","model_name":"add","inputs":[{"name":"input_1","$from":{"id":"a","output":"output_0"}},{"name":"input_0","shape":[2,3],"datatype":"FP32","$from":{"id":"a"}}],"answer":false},{"id":"a","model_name":"add","args":[[[1,2,3],[4,5,6]],[[0,0,0],[0,0,0]]],"answer":false}]
< 200
json [{"id":"c","status":200,"result":[[3.0,6.0,9.0],[12.0,15.0,18.0]]},{"id":"b","status":200},{"id":"a","status":200}]

play only those that depend on a failure fail
post /v2/batch [{"id":"a","model_name":"none","args":[]},{"id":"b","model_name":"add","args":[{"$from":{"id":"a"}},[[0,0,0],[0,0,0]]]},{"id":"c","model_name":"add","args":[{"$from":{"id":"b"}},[[0,0,0],[0,0,0]]]},{"id":"d","model_name":"add","args":[[[1,2,3],[4,5,6]],[[0,0,0],[0,0,0]]]}]
< 200
json [{"id":"a","status":404,"error":"no model 'none', see GET /v2/models"},{"id":"b","status":404,"error":"takes a result that depends on request 'a', which failed: no model 'none', see GET /v2/models"},{"id":"c","status":404,"error":"takes a result that depends on request 'a', which failed: no model 'none', see GET /v2/models"},{"id":"d","status":200,"result":[[1.0,2.0,3.0],[4.0,5.0,6.0]]}]
post /v2/batch [{"id":"x","model_name":"faults.divide","args":[[70,80,90,100],[7,0,9,10]]},{"id":"y","model_name":"faults.divide","args":[{"$from":{"id":"x"}},[1,1,1,1]]},{"id":"z","model_name":"faults.divide","args":[[70,80,90,100],[7,8,9,10]]}]
< 200
json [{"id":"x","status":400,"error":"model 'faults.divide': div_mode: an integer is divided by zero"},{"id":"y","status":400,"error":"takes a result that depends on request 'x', which failed: model 'faults.divide': div_mode: an integer is divided by zero"},{"id":"z","status":200,"result":[[10,10,10,10],[0,0,0,0]]}]

play errors of one request
post /v2/batch [{"model_name":"add","args":[[[1,2],[4,5]],2]},{"model_name":"add","inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,"6"]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[1,1,1,1,1,1]}]},{"model_name":"add","inputs":5},{"model_name":"add","model_version":"9","args":[]},{"model_name":"add","model_version":"x","args":[]},{"model_name":"ledger.total","args":[1.0],"parameters":{"sequence_id":3,"sequence_start":true}},{"model_name":"add","more":1,"args":[]},{"model_name":"add","inputs":[]}]
< 200
json [{"status":400,"error":"args[0]: expected float32[2,3], got shape [2,2]"},{"status":400,"error":"inputs[0].data[5]: expected a number, got a string"},{"status":400,"error":"inputs: expected an array, got a number (byte 254)"},{"status":404,"error":"model 'add' has no version 9"},{"status":400,"error":"model_version: expected a version, got 'x'"},{"status":200,"result":[0.0,0.0,0.0]},{"status":400,"error":"more: unknown member, expected args, kwargs or parameters (byte 475)"},{"status":400,"error":"input 'input_0' is missing, expected FP32 [2,3]"}]

play results that cannot be used
post /v2/batch [{"id":"a","model_name":"add","args":[[[1,2,3],[4,5,6]],[[0,0,0],[0,0,0]]],"answer":false},{"model_name":"add","args":[{"$from":{"id":"a","output":"out"}},[[0,0,0],[0,0,0]]]},{"model_name":"mlp","args":[{"$from":{"id":"a"}}]},{"model_name":"faults.divide","args":[{"$from":{"id":"a"}},[1,1,1,1]]},{"model_name":"add","args":[{"$from":{"id":"a"},"shape":[3,2]},[[0,0,0],[0,0,0]]]},{"model_name":"add","inputs":[{"name":"input_0","$from":{"id":"a"},"shape":[3,2]},{"name":"input_1","$from":{"id":"a"}}]},{"model_name":"add","inputs":[{"name":"input_0","$from":{"id":"a"},"datatype":"FP64"},{"name":"input_1","$from":{"id":"a"}}]},{"model_name":"add","inputs":[{"name":"other","$from":{"id":"a"}}]}]
< 200
json [{"id":"a","status":200},{"status":400,"error":"args[0].$from.output: model 'add': there is no output 'out', expected output_0"},{"status":400,"error":"args[0].$from: expected float32[?,12], got float32[2,3]"},{"status":400,"error":"args[0].$from: expected int64[4], got float32[2,3]"},{"status":400,"error":"args[0]: expected float32[2,3], got float32[3,2]"},{"status":400,"error":"model 'add': inputs[0].$from: expected shape [3,2], got [2,3]"},{"status":400,"error":"inputs[0].$from: datatype is FP64, expected FP32"},{"status":400,"error":"inputs[0].$from: model 'add' has no input 'other', expected one of input_0 and input_1"}]

play errors of the list
post /v2/batch []
< 400
json {"error":"expected 1 to 64 requests, got 0"}
post /v2/batch {}
< 400
json {"error":"expected an array, got an object (byte 0)"}
post /v2/batch [{"model_name":"add","args":[]}
< 400
post /v2/batch [1]
< 400
json {"error":"[0]: expected an object, got a number (byte 1)"}
post /v2/batch [{"id":"a"}]
< 400
json {"error":"[0]: member \"model_name\" is missing (byte 7)"}
post /v2/batch [{"id":7,"model_name":"add"}]
< 400
json {"error":"[0].id: expected a string, got a number (byte 7)"}
post /v2/batch [{"model_name":"add","inputs":[],"args":[]}]
< 400
body .*\[0\]: has both inputs and arguments, expected one.*
post /v2/batch [{"id":"a","model_name":"add"},{"model_name":"add"},{"id":"\u0061","model_name":"add"}]
< 400
json {"error":"[2].id: repeats the id of [0], 'a'"}
post /v2/batch [{"model_name":"add","args":[{"$from":{"id":"a"}},[[0,0,0],[0,0,0]]]}]
< 400
json {"error":"[0].args[0].$from.id: no request has the id 'a'"}
post /v2/batch [{"model_name":"add","inputs":[{"name":"input_1","$from":{"id":""}}]}]
< 400
json {"error":"[0].inputs[0].$from.id: no request has the id ''"}
post /v2/batch [{"id":"a","model_name":"add","args":[{"$from":{"id":"a"}},[[0,0,0],[0,0,0]]]}]
< 400
json {"error":"[0].args[0].$from: 'a' takes a result that depends on its own: a circle"}
post /v2/batch [{"id":"z","model_name":"methods.get_width"},{"id":"a","model_name":"add","args":[[[0,0,0],[0,0,0]],{"$from":{"id":"c"}}]},{"id":"b","model_name":"add","args":[{"$from":{"id":"z"}},{"$from":{"id":"a"}}]},{"id":"c","model_name":"add","inputs":[{"name":"input_0","$from":{"id":"b"}}]},{"id":"d","model_name":"add","args":[{"$from":{"id":"c"}},[[0,0,0],[0,0,0]]]}]
< 400
body .*\$from: '[abc]' takes a result that depends on its own: a circle.*
post /v2/batch [{"model_name":"add","args":[{"$from":{"id":"0123456789012345678901234567890123456789012345678901234567890123456789"}},[[0,0,0],[0,0,0]]]}]
< 400
body .*'0123456789012345678901234567890123456789012345678901234567890123'"\}
get /v2/batch
< 405

play binary tensors both ways
post+ /v2/batch Inference-Header-Content-Length:368 [{"id":"a","model_name":"add","args":[{"dtype":"float32","shape":[2,3],"binary_data_size":24},[[0,0,0],[0,0,0]]],"answer":false},{"id":"b","model_name":"add","inputs":[{"name":"input_0","$from":{"id":"a"}},{"name":"input_1","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}}],"outputs":[{"name":"output_0","parameters":{"binary_data":true}}]}]      \x00\x00\x80\x3f\x00\x00\x80\x3f\x00\x00\x80\x3f\x00\x00\x80\x3f\x00\x00\x80\x3f\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x00\x40\x00\x00\x00\x40\x00\x00\x00\x40\x00\x00\x00\x40\x00\x00\x00\x40
< 200
field Content-Type: application/octet-stream
field Inference-Header-Content-Length: 192
bytes [{"id":"a","status":200},{"id":"b","status":200,"model_name":"add","model_version":"1","outputs":[{"name":"output_0","datatype":"FP32","shape":[2,3],"parameters":{"binary_data_size":24}}]}]   \x00\x00\x40\x40\x00\x00\x40\x40\x00\x00\x40\x40\x00\x00\x40\x40\x00\x00\x40\x40\x00\x00\x40\x40
post+ /v2/batch Inference-Header-Content-Length:112 [{"model_name":"none","args":[{"dtype":"float32","shape":[1],"binary_data_size":4}]},{"model_name":"add"}]      abcd
< 404
json {"error":"[0]: no model 'none', see GET /v2/models"}
post+ /v2/batch Inference-Header-Content-Length:48 [{"model_name":"methods.get_width"}]            abcd
< 400
json {"error":"4 bytes behind the last tensor's binary data"}
post+ /v2/batch Inference-Header-Content-Length:0 abcd
< 400
json {"error":"a list of requests needs JSON"}

play scalars and strings
post /v2/batch [{"id":"w","model_name":"methods.get_width"},{"id":"n","model_name":"methods.get_name"},{"model_name":"add","args":[{"$from":{"id":"w"}},[[0,0,0],[0,0,0]]]}]
< 200
body \[\{"id":"w","status":200,"result":10\},\{"id":"n","status":200,"result":".*"\},\{"status":400,"error":"args\[0\]\.\$from: expected float32\[2,3\], got .*"\}\]

play limits of one answer
post /v2/batch [{"model_name":"add","parameters":{"timeout":"x"},"args":[1,2]}]
< 200
body .*"status":400,"error":"parameters\.timeout: expected a whole number, got a string.*
post /v2/batch [{"model_name":"methods.get_width","parameters":{"priority":1,"timeout":60000000}}]
< 200
open
