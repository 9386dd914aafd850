# Calls in a method's own structure, and the description of a method.
model add
model methods
model scalars
model mlp
model ledger
model sizes
model joined
model shapes

play nested arrays in, nested arrays out
post /v2/models/add/call {"args":[[[1,2,3],[4,5,6]],[[10,20,30],[40,50,60]]]}
< 200
json {"result": [[11.0,22.0,33.0],[44.0,55.0,66.0]]}
field Content-Type: application/json
post /v2/models/add/versions/1/call {"kwargs":{},"args":[[[1,2,3],[4,5,6]],[[0,0,0],[0,0,0]]]}
< 200
post /v2/models/add/versions/2/call {}
< 404

play base64
post /v2/models/add/call {"args":[{"dtype":"float32","shape":[2,3],"base64":"AACAPwAAAEAAAEBAAACAQAAAoEAAAMBA"},[[10,20,30],[40,50,60]]]}
< 200
json {"result": [[11.0,22.0,33.0],[44.0,55.0,66.0]]}
post /v2/models/add/call {"args":[{"dtype":"FP32","shape":[2,3],"base64":"AACAPwAAAEAAAEBAAACAQAAAoEAAAMB"},[[10,20,30],[40,50,60]]]}
< 400
body .*args\[0\]\.base64: expected 32 characters for 24 bytes, got 31.*
post /v2/models/add/call {"args":[{"dtype":"float32","shape":[2,3],"base64":"AACAPwAAAEAAAEBAAACAQAAAoEAAAM*A"},[[10,20,30],[40,50,60]]]}
< 400
body .*args\[0\]: malformed base64 in characters 28 to 31.*

play binary both ways
post+ /v2/models/add/call?binary=1 Inference-Header-Content-Length:92 {"args":[{"dtype":"float32","shape":[2,3],"binary_data_size":24},[[1,1,1],[1,1,1]]]}        \x00\x00\x80\x3f\x00\x00\x80\x3f\x00\x00\x80\x3f\x00\x00\x80\x3f\x00\x00\x80\x3f\x00\x00\x80\x3f
< 200
field Content-Type: application/octet-stream
field Inference-Header-Content-Length: 128
bytes {"result":{"dtype":"float32","shape":[2,3],"binary_data_size":24}}                                                              \x00\x00\x00\x40\x00\x00\x00\x40\x00\x00\x00\x40\x00\x00\x00\x40\x00\x00\x00\x40\x00\x00\x00\x40
post /v2/models/add/call?binary=1 {"args":[[[1,2,3],[4,5,6]],{"dtype":"float32","shape":[2,3],"binary_data_size":24}]}
< 400
body .*args\[1\]: expected 24 bytes behind the JSON, got 0.*
post+ /v2/models/add/call Inference-Header-Content-Length:0 abc
< 400

play NaN and infinities
post /v2/models/add/call {"args":[[[1,"NaN","Infinity"],["-Infinity",0,0]],[[0,0,0],[0,0,0]]]}
< 200
body \{"result":\[\[1.0,"NaN","Infinity"\],\["-Infinity",0.0,0.0\]\]\}
post /v2/models/add/call {"args":[[[1,NaN,0],[0,0,0]],[[0,0,0],[0,0,0]]]}
< 200
body \{"result":\[\[1.0,NaN,0.0\],\[0.0,0.0,0.0\]\]\}
post /v2/models/add/call {"args":[{"dtype":"float32","shape":[2,3],"fill":"-Infinity"},[[0,0,0],[0,0,0]]],"parameters":{"nan":"null"}}
< 200
body \{"result":\[\[null,null,null\],\[null,null,null\]\]\}
post /v2/models/add/call {"args":[[[null,1,1],[1,1,1]],[[0,0,0],[0,0,0]]],"parameters":{"nan":"token"}}
< 400
json {"error": "args[0][0][0]: expected a number, got null"}
post /v2/models/ledger.total/call {"args":["NaN"]}
< 200
body \{"result":\["NaN","NaN","NaN"\]\}
post /v2/models/ledger.total/call {"args":[null],"parameters":{"nan":"null"}}
< 200
body \{"result":\[null,null,null\]\}
post /v2/models/ledger.total/call {"args":["nan"]}
< 400
json {"error": "args[0]: expected float32[], got a string"}
post /v2/models/ledger.total/call {"args":[null]}
< 400
body .*args\[0\]: expected .*, got null.*
post /v2/models/add/call?binary=1 {"args":[[[1,"NaN",1],[1,1,1]],{"dtype":"float32","shape":[2,3],"fill":0}]}
< 200
bytes {"result":{"dtype":"float32","shape":[2,3],"binary_data_size":24}}                                                              \x00\x00\x80\x3f\x00\x00\xc0\x7f\x00\x00\x80\x3f\x00\x00\x80\x3f\x00\x00\x80\x3f\x00\x00\x80\x3f

play parameters beside the arguments
post /v2/models/add/call {"args":[[[1,2,3],[4,5,6]],[[0,0,0],[0,0,0]]],"parameters":{"priority":1,"timeout":60000000,"own":"x"}}
< 200
json {"result": [[1.0,2.0,3.0],[4.0,5.0,6.0]]}
post /v2/models/add/call {"parameters":{"binary_data_output":true},"args":[[[1,1,1],[1,1,1]],[[1,1,1],[1,1,1]]]}
< 200
field Inference-Header-Content-Length: 128
bytes {"result":{"dtype":"float32","shape":[2,3],"binary_data_size":24}}                                                              \x00\x00\x00\x40\x00\x00\x00\x40\x00\x00\x00\x40\x00\x00\x00\x40\x00\x00\x00\x40\x00\x00\x00\x40
post /v2/models/add/call {"args":[],"parameters":{"timeout":"soon"}}
< 400
body .*parameters\.timeout: expected a whole number, got a string.*
post /v2/models/add/call {"args":[{"$from":{"id":"a"}},1]}
< 400
body .*args\[0\]\.\$from: only the requests of a POST /v2/batch can take each other's results.*
post /v2/models/add/shape {"args":[],"parameters":{"priority":1}}
< 200

play sequences
post /v2/models/ledger.enter/call {"args":[[0,1],[[2,2,2],[2,2,2]]],"parameters":{"sequence_id":7}}
< 400
body .*parameters\.sequence_id: this sequence is not open.*
post /v2/models/ledger.enter/call {"args":[[0,1],[[2,2,2],[2,2,2]]],"parameters":{"sequence_start":true}}
< 400
json {"error": "parameters.sequence_start: sequence_id is missing, 0 or empty"}
post /v2/models/ledger.enter/call {"args":[[0,1],[[2,2,2],[2,2,2]]],"parameters":{"sequence_id":7,"sequence_start":true}}
< 200
post /v2/models/ledger.total/call {"args":[1.0],"parameters":{"sequence_id":7}}
< 200
json {"result": [4.0,4.0,4.0]}
post /v2/models/ledger.total/call {"args":[1.0]}
< 200
json {"result": [0.0,0.0,0.0]}
post /v2/models/ledger.total/call {"args":[1.0],"parameters":{"sequence_id":7,"sequence_end":true}}
< 200
post /v2/models/ledger.total/call {"args":[1.0],"parameters":{"sequence_id":7}}
< 400

play errors name the place in the structure
post /v2/models/add/call {"args":["x",2]}
< 400
json {"error": "args[0]: expected float32[2,3], got a string"}
post /v2/models/add/call {"args":[1,2]}
< 400
json {"error": "args[0]: expected float32[2,3], got a number"}
post /v2/models/add/call {"args":[[[1,2,3],[4,5]],2]}
< 400
json {"error": "args[0][1]: ragged at depth 1: expected 3 elements as in the first, got 2"}
post /v2/models/add/call {"args":[[[1,2,3],4],2]}
< 400
json {"error": "args[0][1]: ragged at depth 1: expected an array, got a number"}
post /v2/models/add/call {"args":[[[1,2],[3,4]],2]}
< 400
json {"error": "args[0]: expected float32[2,3], got shape [2,2]"}
post /v2/models/add/call {"args":[[[1,2,3],[4,"5",6]],2]}
< 400
json {"error": "args[0][1][1]: expected a number, got a string"}
post /v2/models/add/call {"args":[[[1,2,3],[4,true,6]],[[0,0,0],[0,0,0]]]}
< 400
json {"error": "args[0][1][1]: expected a number, got a boolean"}
post /v2/models/add/call {"args":[[[1,2,3],[4,5,6]]]}
< 400
json {"error": "args[1]: missing, expected float32[2,3]"}
post /v2/models/add/call {}
< 400
json {"error": "args[0]: missing, expected float32[2,3]"}
post /v2/models/add/call {"args":[[[1,2,3],[4,5,6]],[[0,0,0],[0,0,0]],null]}
< 400
json {"error": "args[2]: unexpected, the method takes 2 here"}
post /v2/models/add/call {"args":[],"kwargs":{"x":1}}
< 400
json {"error": "kwargs: the method takes none"}
post /v2/models/add/call {"inputs":[]}
< 400
body .*unknown member, expected args, kwargs or parameters.*
post /v2/models/add/call {"args":{}}
< 400
json {"error": "args: expected an array of 2, got an object"}
post /v2/models/add/call {"args":[{"dtype":"int32","shape":[2,3],"base64":""},1]}
< 400
json {"error": "args[0]: expected float32[2,3], got int32"}
post /v2/models/add/call {"args":[{"dtype":"float32","base64":""},1]}
< 400
json {"error": "args[0]: member \"shape\" is missing"}
post /v2/models/add/call {"args":[{"dtype":"float32","shape":[2,3]},1]}
< 400
json {"error": "args[0]: expected one of base64, binary_data_size and fill, got none"}
post /v2/models/add/call {"args":[
< 400
open

play methods without arguments
post /v2/models/methods.get_width/shape {}
< 200
post /v2/models/methods.get_width/shape {"parameters":{"priority":1}}
< 200
post /v2/models/add/shape {}
< 200
post /v2/models/add/shape {"id":"a","inputs":[]}
< 200
post /v2/models/add/shape {"inputs":1}
< 400
post /v2/models/methods.get_width/call {}
< 200
post /v2/models/methods.get_name/shape {}
< 200
json {"model_name":"methods.get_name","model_version":"1","outputs":[{"name":"output_0","datatype":"BYTES","shape":[1],"bytes":18}]}
post /v2/models/methods.get_name/call {"args":[]}
< 200
body \{"result":".*"\}

play the description of a method
get /v2/models/add/signature
< 200
body .*"abi":"sip".*"fv":"1","f":"I15!B5!d2d3B5!d2d3R8!B5!d2d3","fbr":null,"sipv":1,"sip":"I12!S9!k0_0k1_1R3!_0",.*"in_place":\{"byte_order":"little","body_bytes_min":65537,"inputs":\[\{"alignment":4,"strides":\[12,4\]\},\{"alignment":4,"strides":\[12,4\]\}\]\}.*"example":.*
get /v2/models/methods.get_width/signature
< 200
body .*"properties":\{("args":.*,)?"parameters":\{"type":"object"\}\},"required":\[\].*
get /v2/models/nope/signature
< 404
post /v2/models/add/signature {}
< 405

play the signature and the metadata have the same example shapes
get /v2/models/shapes.recall/signature
< 200
body .*"example":\{"args":\[\[\[\[0(,0){5}\](,\[0(,0){5}\]){4}\]\],\[\[\[0(,0){7}\]\],\[\[0(,0){7}\]\]\]\]\}\}
get /v2/models/shapes.recall
< 200
body .*"shape":\[-1,-1,-1\],"example_shape":\[1,5,6\],"max_shape":\[6,5,6\]\},.*"shape":\[-1,-1,-1\],"example_shape":\[2,1,8\],"max_shape":\[2,6,8\]\}\],"outputs".*
get /v2/models/shapes.step
< 200
body .*"shape":\[1,-1\],"example_shape":\[1,1\],"max_shape":\[1,5\]\}.*
get /v2/models/add
< 200
json {"name":"add","versions":["1"],"platform":"executorch_pte","inputs":[{"name":"input_0","datatype":"FP32","shape":[2,3]},{"name":"input_1","datatype":"FP32","shape":[2,3]}],"outputs":[{"name":"output_0","datatype":"FP32","shape":[2,3]}],"precision":"fast", "lacks": {"batches": "dim 0 of input 'input_0' is not 1"}}

play shapes that do not depend on data, though others do
post /v2/models/sizes/shape {"inputs":[{"name":"input_0","shape":[3]},{"name":"input_1","shape":[9]}]}
< 200
body .*"name":"output_1","datatype":"FP32","shape":\[[0-9]+\].*
post /v2/models/joined/shape {"args":[{"dtype":"float32","shape":[3,4]}]}
< 200
json {"model_name":"joined","model_version":"1","outputs":[{"name":"output_0","datatype":"FP32","shape":[6,4],"bytes":96},{"name":"output_1","datatype":"FP32","shape":[3],"bytes":12},{"name":"output_2","datatype":"INT64","shape":[-1,2],"bounds":[48,2],"bytes_max":768},{"name":"output_3","datatype":"FP32","shape":[3,4],"bytes":48}]}

play sizes that a call found make the other shapes exact
post /v2/models/joined/call {"args":[[[0,1,2],[0,0,3]],true]}
< 200
body .*,\[\[0,1\],\[0,2\],\[1,2\]\],.*
post /v2/models/joined/shape {"args":[{"dtype":"float32","shape":[3,4]}],"outputs":[{"name":"output_2","shape":[5,2]}]}
< 200
json {"model_name":"joined","model_version":"1","outputs":[{"name":"output_0","datatype":"FP32","shape":[6,4],"bytes":96},{"name":"output_1","datatype":"FP32","shape":[3],"bytes":12},{"name":"output_2","datatype":"INT64","shape":[5,2],"bytes":80},{"name":"output_3","datatype":"FP32","shape":[3,4],"bytes":48}]}
post /v2/models/joined/shape {"inputs":[{"name":"input_0","shape":[3,4]}],"outputs":[{"name":"output_2","datatype":"INT64","shape":[0,2],"data":[]},{"name":"output_0","shape":[6,4],"parameters":{"binary_data_size":96}}]}
< 200
json {"model_name":"joined","model_version":"1","outputs":[{"name":"output_0","datatype":"FP32","shape":[6,4],"bytes":96},{"name":"output_1","datatype":"FP32","shape":[3],"bytes":12},{"name":"output_2","datatype":"INT64","shape":[0,2],"bytes":0},{"name":"output_3","datatype":"FP32","shape":[3,4],"bytes":48}]}
post /v2/models/joined/shape {"inputs":[{"name":"input_0","shape":[3,4]}],"outputs":[{"name":"output_2"},{"name":"output_1","shape":null}]}
< 200
json {"model_name":"joined","model_version":"1","outputs":[{"name":"output_0","datatype":"FP32","shape":[6,4],"bytes":96},{"name":"output_1","datatype":"FP32","shape":[3],"bytes":12},{"name":"output_2","datatype":"INT64","shape":[-1,2],"bounds":[48,2],"bytes_max":768},{"name":"output_3","datatype":"FP32","shape":[3,4],"bytes":48}]}

play the result allocator, called by its name
get /v2/models/joined/signature
< 200
body .*"fbr":"forward\$results".*
post /v2/models/joined/forward$results/call {"args":[3,3]}
< 200
json {"result":[{"dtype":"float32","shape":[6,3],"bytes":72},{"dtype":"float32","shape":[3],"bytes":12},null,{"dtype":"float32","shape":[3,3],"bytes":36}]}
post /v2/models/joined/versions/1/forward%24results/call {"args":[0,1]}
< 200
post /v2/models/joined/forward$results/call {"args":[3]}
< 400
post /v2/models/joined/forward$results/call {"args":[3,3,3]}
< 400
post /v2/models/joined/forward$results/call {"args":[3,-1]}
< 400
post /v2/models/joined/forward$results/call {"args":[3,1.5]}
< 400
post /v2/models/joined/forward$results/call {"args":[3,9999]}
< 400
json {"error":"args[1]: dim 1 of input 'input_0': expected 0 to 4, got 9999"}
post /v2/models/joined/encode$results/call {"args":[]}
< 404
json {"error":"model 'joined' has no 'encode$results', expected forward$results"}
post /v2/models/add/forward$results/call {"args":[]}
< 404
json {"error":"model 'add' has no 'forward$results', expected none: the sizes of its results do not vary"}
post /v2/models/none/forward$results/call {"args":[]}
< 404

play sizes that no call can find
post /v2/models/joined/shape {"inputs":[{"name":"input_0","shape":[3,4]}],"outputs":[{"name":"output_1"},{"name":"output_2","shape":[49,2]}]}
< 400
json {"error": "outputs[1] 'output_2': dim 0 is 49, expected 0 to 48"}
post /v2/models/joined/shape {"inputs":[{"name":"input_0","shape":[3,4]}],"outputs":[{"name":"output_2","shape":[5,3]}]}
< 400
json {"error": "outputs[0] 'output_2': dim 1 is 3, expected 2"}
post /v2/models/joined/shape {"args":[{"dtype":"float32","shape":[3,4]}],"outputs":[{"name":"output_2","shape":[5]}]}
< 400
json {"error": "outputs[0] 'output_2': expected int64[?,2], got [5]"}
post /v2/models/joined/shape {"inputs":[{"name":"input_0","shape":[3,4]}],"outputs":[{"name":"output_0","shape":[6,5]}]}
< 400
json {"error": "outputs[0] 'output_0': dim 1 is 5, expected 4"}
post /v2/models/joined/shape {"inputs":[{"name":"input_0","shape":[3,4]}],"outputs":[{"name":"nope","shape":[6,5]}]}
< 400
json {"error": "outputs[0].name: model 'joined' has no output 'nope', expected one of output_0, output_1, output_2 and output_3"}
post /v2/models/joined/shape {"inputs":[{"name":"input_0","shape":[3,4]}],"outputs":[{"name":"output_2","shape":[-1,2]}]}
< 400
body .*outputs\[0\].shape\[0\]: expected 0 or more, got -1.*
post /v2/models/joined/call {"args":[[[0,1,2],[0,0,3]],true],"outputs":[]}
< 400
body .*outputs: unknown member, expected args, kwargs or parameters.*

play shapes of results
post /v2/models/add/shape {"inputs":[{"name":"input_0","shape":[2,3]},{"name":"input_1","shape":[2,3]}]}
< 200
json {"model_name":"add","model_version":"1","outputs":[{"name":"output_0","datatype":"FP32","shape":[2,3],"bytes":24}]}
post /v2/models/add/shape {"inputs":[]}
< 200
post /v2/models/add/shape {"inputs":[{"name":"input_0","shape":[2,4]}]}
< 400
json {"error": "input 'input_0': expected float32[2,3], got float32[2,4]"}
post /v2/models/add/shape {"inputs":[{"name":"other","shape":[2,4]}]}
< 400
json {"error": "inputs[0].name: model 'add' has no input 'other', expected one of input_0 and input_1"}
post /v2/models/mlp/shape {"inputs":[]}
< 400
json {"error": "input 'input_0' is missing, expected float32[?,12]"}

play tensors of one value
post /v2/models/add/call {"args":[{"dtype":"float32","shape":[2,3],"fill":1.5},[[1,2,3],[4,5,6]]]}
< 200
json {"result": [[2.5,3.5,4.5],[5.5,6.5,7.5]]}
post /v2/models/add/call {"args":[{"dtype":"float32","shape":[2,3],"fill":"x"},1]}
< 400
body .*args\[.*
post /v2/models/add/call {"args":[{"dtype":"float32","shape":[2,4],"fill":0},1]}
< 400
json {"error": "args[0]: expected float32[2,3], got float32[2,4]"}
post /v2/models/add/call {"args":[{"dtype":"float32","shape":[2,3],"fill":0,"base64":""},1]}
< 400
json {"error": "args[0]: expected one of base64, binary_data_size and fill, got several"}
get /v2/models/mlp/signature
< 200
body .*"maxItems":.*"parameters":\{"type":"object"\}\},"required":\["args"\],"additionalProperties":false\},"example":.*
get /v2/models/mlp/signature
body .*"result_schema":\{"title":"output_0","description":"float32\[\?,5\]","anyOf":\[.*

play shapes of results in the method's own structure
post /v2/models/add/shape {"args":[[[1,2,3],[4,5,6]],{"dtype":"float32","shape":[2,3]}]}
< 200
json {"model_name":"add","model_version":"1","outputs":[{"name":"output_0","datatype":"FP32","shape":[2,3],"bytes":24}]}
post /v2/models/add/shape {"args":[]}
< 200
post /v2/models/add/shape {"args":[{"dtype":"float32","shape":[2,4]}]}
< 400
json {"error": "args[0]: expected float32[2,3], got float32[2,4]"}
post /v2/models/mlp/shape {"args":[]}
< 400
body .*args\[0\]: missing, expected float32\[\?,.*
post /v2/models/methods.encode/shape {"args":[{"dtype":"float32","shape":[5,10]}]}
< 200
body .*"shape":\[5,4\],"bytes":80.*

play control characters among numbers
post /v2/models/add/call {"args":[[[1,2,3\x03,[4,5,6]],[[1,2,3],[4,5,6]]]}
< 400
body .*args\[0\]\[0\]\[3\].*expected a number.*
