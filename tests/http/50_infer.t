# JSON requests: what is accepted, what is refused, and the path in each error.
option --json-depth-max=8
model add
model methods
model scalars
model zero_size
model int64_exact
model faults

play nested data
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[[1,2,3],[4,5,6]]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 200
body .*"data":\[11.0,22.0,33.0,44.0,55.0,66.0\].*

play numbers in all notations
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1e2, -0.5E+1, 0.1, 16777217, NaN, -Infinity]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[0,0,0,0,0,0]}]}
< 200
body .*"data":\[100.0,-5.0,0.1,16777216.0,NaN,-Infinity\].*

play NaN and infinities are strings, so that the answer is JSON
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,"NaN","Infinity","-Infinity",0,-0.5]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[0,0,0,0,0,0]}]}
< 200
body .*"data":\[1.0,"NaN","Infinity","-Infinity",0.0,-0.5\]\}\]\}
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,"NaN","Infinity","-Infinity",0,-0.5]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[0,0,0,0,0,0]}]}
< 200

play a client that sends or requests bare NaN and Infinity gets them
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,NaN,Infinity,-Infinity,0,-0.5]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[0,0,0,0,0,0]}]}
< 200
body .*"data":\[1.0,NaN,Infinity,-Infinity,0.0,-0.5\]\}\]\}
post /v2/models/add/infer {"parameters":{"nan":"token"},"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,"NaN","Infinity","-Infinity",0,-0.5]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[0,0,0,0,0,0]}]}
< 200
body .*"data":\[1.0,NaN,Infinity,-Infinity,0.0,-0.5\]\}\]\}
post /v2/models/add/infer {"parameters":{"nan":"string"},"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,NaN,Infinity,-Infinity,0,-0.5]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[0,0,0,0,0,0]}]}
< 200
body .*"data":\[1.0,"NaN","Infinity","-Infinity",0.0,-0.5\]\}\]\}

play null is NaN only if the request says so
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,null,null,null,0,-0.5]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[0,0,0,0,0,0]}]}
< 400
json {"error": "inputs[0].data[1]: expected a number, got null"}
post /v2/models/add/infer {"parameters":{"nan":"null"},"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,null,null,null,0,-0.5]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[0,0,0,0,0,0]}]}
< 200
body .*"data":\[1.0,null,null,null,0.0,-0.5\]\}\]\}
post /v2/models/add/infer {"parameters":{"nan":"null"},"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,NaN,Infinity,-Infinity,0,-0.5]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[0,0,0,0,0,0]}]}
< 200
body .*"data":\[1.0,null,null,null,0.0,-0.5\]\}\]\}
post /v2/models/add/infer {"parameters":{"nan":"NaN"},"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,"NaN","Infinity","-Infinity",0,-0.5]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[0,0,0,0,0,0]}]}
< 400
body .*parameters.nan: expected \\"string\\", \\"token\\" or \\"null\\", got \\"NaN\\".*
post /v2/models/add/infer {"parameters":{"nan":null},"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,"NaN","Infinity","-Infinity",0,-0.5]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[0,0,0,0,0,0]}]}
< 400

play integers have no NaN
post /v2/models/int64_exact/infer {"inputs":[{"name":"input_0","shape":[6],"datatype":"INT64","data":[0,"NaN",0,0,0,0]},{"name":"input_1","shape":[6],"datatype":"INT64","data":[0,0,0,0,0,0]}]}
< 400
json {"error": "inputs[0].data[1]: expected an integer, got a string"}
post /v2/models/int64_exact/infer {"inputs":[{"name":"input_0","shape":[6],"datatype":"INT64","data":[0,NaN,0,0,0,0]},{"name":"input_1","shape":[6],"datatype":"INT64","data":[0,0,0,0,0,0]}]}
< 400
json {"error": "inputs[0].data[1]: expected an integer, got NaN"}
post /v2/models/int64_exact/infer {"inputs":[{"name":"input_0","shape":[6],"datatype":"INT64","data":[0,null,0,0,0,0]},{"name":"input_1","shape":[6],"datatype":"INT64","data":[0,0,0,0,0,0]}]}
< 400
json {"error": "inputs[0].data[1]: expected an integer, got null"}

play unknown members are ignored
post /v2/models/add/infer {"model_name":"x","future":{"a":[1,{}]},"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 200

play inputs in another order
post /v2/models/add/infer {"inputs":[{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]},{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]}]}
< 200

play id is echoed, also with an escape
post /v2/models/add/infer {"id":"\\u00e4\\"\\\\","inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 200
body \{"id":"\xc3\xa4\\"\\\\".*

play requested outputs
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}],"outputs":[{"name":"output_0"}]}
< 200
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}],"outputs":[]}
< 200
body .*output_0.*
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}],"outputs":[{"name":"output_0"},{"name":"output_0"}]}
< 200
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}],"outputs":[{"name":"nope"}]}
< 400
body .*outputs\[0\].name: model 'add' has no output 'nope'.*

play not JSON
post /v2/models/add/infer hello
< 400
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]
< 400
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]} x
< 400
post /v2/models/add/infer []
< 400
> POST /v2/models/add/infer HTTP/1.1
> Host: a
> Content-Length: 0
>
< 400
open

play errors name the missing member
post /v2/models/add/infer {}
< 400
body .*inputs.*missing.*
post /v2/models/add/infer {"inputs":[{"shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]}]}
< 400
body .*inputs\[0\].*name.*missing.*
post /v2/models/add/infer {"inputs":[{"name":"input_0","datatype":"FP32","data":[1]}]}
< 400
body .*inputs\[0\].*shape.*missing.*
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"data":[1]}]}
< 400
body .*inputs\[0\].*datatype.*missing.*
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]}]}
< 400
json {"error": "input 'input_1' is missing, expected FP32 [2,3]"}
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[3,2],"datatype":"INT32","data":[1,2,3,4,5,6]}]}
< 400
json {"error": "input 'input_1' is missing, expected FP32 [2,3]"}
open

play unknown and repeated inputs
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"other","shape":[1],"datatype":"FP32","data":[1]}]}
< 400
body .*inputs\[1\].name: model 'add' has no input 'other'.*
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]}]}
< 400
body .*inputs\[1\]: repeats the name of inputs\[0\].*

play wrong shape
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[3,2],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 400
body .*input_0.*\[3,2\], expected \[2,3\].*
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[6],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 400
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[-2,-3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 400
body .*inputs\[0\].shape\[0\].*
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2.0,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 400
body .*inputs\[0\].shape\[0\].*
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[9223372036854775807,4],"datatype":"FP32","data":[1]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 413
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[9223372036854775808],"datatype":"FP32","data":[1]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 400
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[1073741824,1073741824],"datatype":"FP32","data":[1]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 413
open

play too few and too many elements
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,4],"datatype":"FP32","data":[1, 2.5]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 400
json {"error": "inputs[0].data: expected 8 elements (shape [2,4]), got 2"}
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6,7,[8]]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 400
json {"error": "inputs[0].data: expected 6 elements (shape [2,3]), got 8"}
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[[1,2,3],[4,5,6],[7]]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 400
json {"error": "inputs[0].data: expected 2 elements (shape [2,3]), got 3"}

play wrong datatype
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"INT32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 400
body .*input_0.*INT32, expected FP32.*
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FLOAT","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 400
body .*inputs\[0\].datatype.*FLOAT.*

play wrong elements are named by their path
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[[1,2,3],[4,"5",6]]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 400
body .*inputs\[0\].data\[1\]\[1\].*
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 400
body .*inputs\[0\].data.*
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6,7]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 400
body .*inputs\[0\].data.*
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[[1,2],[3,4],[5,6]]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 400
body .*inputs\[0\].data.*
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,1e400]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 400
body .*inputs\[0\].data\[5\].*
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,06]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 400
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,null]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 400
open

play keys that repeat
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}],"inputs":[]}
< 400

play nesting
post /v2/models/add/infer {"x":[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]],"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 413
body .*nested deeper than 8.*

play invalid UTF-8
post /v2/models/add/infer {"id":"\xff","inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 400

play an id that is not a string
post /v2/models/add/infer {"id":7,"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 400

play reserved parameters and shared memory
post /v2/models/add/infer {"parameters":{"triton_x":1},"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 400
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","parameters":{"shared_memory_region":"r","shared_memory_byte_size":24}},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 501

play each method is a model
get /v2/models/methods
< 404
get /v2/models/methods.encode
< 200
body .*"shape":\[-1,10\].*
post /v2/models/methods.encode/infer {"inputs":[{"name":"input_0","shape":[9,10],"datatype":"FP32","data":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63,64,65,66,67,68,69,70,71,72,73,74,75,76,77,78,79,80,81,82,83,84,85,86,87,88,89,90]}]}
< 400
post /v2/models/methods.encode/infer {"inputs":[{"name":"input_0","shape":[2,10],"datatype":"FP32","data":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]}]}
< 200
body .*"shape":\[2,4\].*

play a method without inputs
post /v2/models/methods.get_name/infer {"inputs":[]}
< 200
body .*"datatype":"BYTES","shape":\[1\],"data":\["[^"]+"\].*
post /v2/models/methods.get_width/infer {"inputs":[]}
< 200
body .*"datatype":"INT64","shape":\[\],"data":\[[0-9]+\].*
post /v2/models/methods.get_scale/infer {"inputs":[]}
< 200
body .*"datatype":"FP64","shape":\[\].*
post /v2/models/methods.is_trained/infer {"inputs":[]}
< 200
body .*"datatype":"BOOL","shape":\[\],"data":\[(true|false)\].*

play fixed scalars may be left out, or given with the same value
post /v2/models/scalars/infer {"inputs":[{"name":"input_0","shape":[6],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_5","shape":[],"datatype":"FP32","data":[1]}]}
< 200
post /v2/models/scalars/infer {"inputs":[{"name":"input_0","shape":[6],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[],"datatype":"INT64","data":[4]},{"name":"input_2","shape":[],"datatype":"FP64","data":[0.5]},{"name":"input_3","shape":[],"datatype":"BOOL","data":[true]},{"name":"input_5","shape":[],"datatype":"FP32","data":[1]}]}
< 200

play fixed scalars with another value
post /v2/models/scalars/infer {"inputs":[{"name":"input_0","shape":[6],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[],"datatype":"INT64","data":[5]},{"name":"input_5","shape":[],"datatype":"FP32","data":[1]}]}
< 400
body .*inputs\[1\] 'input_1'.*4.*
post /v2/models/scalars/infer {"inputs":[{"name":"input_0","shape":[6],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_2","shape":[],"datatype":"FP64","data":[0.75]},{"name":"input_5","shape":[],"datatype":"FP32","data":[1]}]}
< 400
body .*inputs\[1\] 'input_2'.*0.5.*

play an argument None has no entry
get /v2/models/scalars
< 200
body (?!.*input_4).*
post /v2/models/scalars/infer {"inputs":[{"name":"input_4","shape":[],"datatype":"INT64","data":[1]}]}
< 400
body .*no input 'input_4'.*

play tensors without elements
post /v2/models/zero_size/infer {"inputs":[{"name":"input_0","shape":[3,4],"datatype":"FP32","data":[1,2,3,4,5,6,7,8,9,10,11,12]},{"name":"input_1","shape":[0,4],"datatype":"FP32","data":[]}]}
< 200
body .*"name":"output_2","datatype":"FP32","shape":\[0,4\],"data":\[\].*

play 64-bit integers are exact
post /v2/models/int64_exact/infer {"inputs":[{"name":"input_0","shape":[6],"datatype":"INT64","data":[9007199254740993,-9223372036854775808,9223372036854775807,0,1,2]},{"name":"input_1","shape":[6],"datatype":"INT64","data":[0,0,0,0,1,2]}]}
< 200
body .*9007199254740993.*-9223372036854775808,9223372036854775807.*
post /v2/models/int64_exact/infer {"inputs":[{"name":"input_0","shape":[6],"datatype":"INT64","data":[9223372036854775808,0,0,0,0,0]},{"name":"input_1","shape":[6],"datatype":"INT64","data":[0,0,0,0,0,0]}]}
< 400
body .*inputs\[0\].data\[0\].*
post /v2/models/int64_exact/infer {"inputs":[{"name":"input_0","shape":[6],"datatype":"INT64","data":[1.0,0,0,0,0,0]},{"name":"input_1","shape":[6],"datatype":"INT64","data":[0,0,0,0,0,0]}]}
< 400

play data that a kernel refuses
post /v2/models/faults/infer {"inputs":[{"name":"input_0","shape":[5,3],"datatype":"FP32","data":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14]},{"name":"input_1","shape":[3],"datatype":"INT64","data":[4,0,5]},{"name":"input_2","shape":[1,3],"datatype":"INT64","data":[0,0,0]}]}
< 400
json {"error": "model 'faults': inputs[1] 'input_1'[2]: embedding: an index is out of range: got 5, expected 0 to 4"}
post /v2/models/faults/call {"args":[[[0,1,2],[3,4,5],[6,7,8],[9,10,11],[12,13,14]],[4,0,3],[[0,5,1]]]}
< 400
json {"error": "model 'faults': args[2][0][1]: gather: an index is out of range: got 5, expected 0 to 4"}
post+ /v2/models/faults/infer Inference-Header-Content-Length:320 {"inputs":[{"name":"input_2","shape":[1,3],"datatype":"INT64","parameters":{"binary_data_size":24}},{"name":"input_0","shape":[5,3],"datatype":"FP32","data":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14]},{"name":"input_1","shape":[3],"datatype":"INT64","data":[4,0,3]}]}                                                           \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff
< 400
json {"error": "model 'faults': inputs[0] 'input_2'[0][2]: gather: an index is out of range: got -1, expected 0 to 4"}
post /v2/models/faults.divide/call {"args":[[7,8,9,10],[1,2,0,4]]}
< 400
body .*an integer is divided by zero.*
post /v2/models/faults.divide/call {"args":[[7,8,9,10],[1,2,3,4]]}
< 200
json {"result": [[7,4,3,2],[0,0,0,2]]}
