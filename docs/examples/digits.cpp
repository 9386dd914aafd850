// c++ -std=c++17 digits.cpp $(pkg-config --cflags --libs pted) -o digits && ./digits digits.pte
// Two pictures at once, each in a call of its own; what was made goes by itself.
#include <pted.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

struct Free {
    void operator()(pted_device *device) const { pted_device_free(device); }
    void operator()(pted_program *program) const { pted_program_free(program); }
    void operator()(pted_call *call) const { pted_call_free(call); }
};
template <typename T> using Owned = std::unique_ptr<T, Free>;

// Calls |fn| with |args| and an error, which becomes an exception.
template <typename Fn, typename... Args> void check(Fn fn, Args... args)
{
    pted_error err{};
    if (fn(args..., &err) != PTED_OK) {
        throw std::runtime_error(err.text);
    }
}
template <typename T, typename Fn, typename... Args> Owned<T> make(Fn fn, Args... args)
{
    T *made = nullptr;
    check(fn, args..., &made);
    return Owned<T>(made);
}

int main(int argc, char *argv[])
try {
    const std::array<int64_t, 4> dims{1, 1, 8, 8};
    std::array<std::array<float, 64>, 2> pictures{}; // an eight of two circles, and a one
    for (int y = 0; y < 8; y++) {
        pictures[0][8 * y + 2] = pictures[0][8 * y + 5] = y != 0 && y != 4 && y != 7;
        pictures[0][8 * y + 3] = pictures[0][8 * y + 4] = y == 0 || y == 4 || y == 7;
        pictures[1][8 * y + 3] = pictures[1][8 * y + 4] = 1;
    }
    auto device = make<pted_device>(pted_device_open, nullptr);
    auto program = make<pted_program>(pted_program_load, device.get(),
                                      argc > 1 ? argv[1] : "digits.pte", nullptr);
    const pted_method *method = nullptr;
    check(pted_program_find_method, program.get(), nullptr, &method);
    std::array<Owned<pted_call>, 2> calls;
    for (size_t i = 0; i < calls.size(); i++) {
        const pted_tensor image{pictures[i].data(), sizeof(pictures[i]), PTED_FLOAT32,
                                4,                  dims.data(),         nullptr};
        calls[i] = make<pted_call>(pted_call_new, method);
        check(pted_call_borrow_input, calls[i].get(), 0, &image);
        check(pted_call_submit, calls[i].get(), nullptr, nullptr);
    }
    for (auto &call : calls) {
        pted_tensor scores{};
        check(pted_call_wait, call.get());
        check(pted_call_output, call.get(), 0, &scores);
        auto first = static_cast<const float *>(scores.data);
        std::cout << std::max_element(first, first + 10) - first << '\n';
    }
} catch (const std::exception &e) {
    std::cerr << "digits: " << e.what() << '\n';
    return 1;
}
